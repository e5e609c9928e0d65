"""Console sessions as rows."""

# ruff: noqa: S608 - our own words

from datetime import datetime

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.statement import Statement
from payagg.domain.audit import ActorRealm
from payagg.extensions.console.ports import ConsoleSession

LISTED_MAX = 100  # sessions of one user
FORGOTTEN_MAX = 1_000  # at each sign-in
SESSION = RowMap(ConsoleSession, "console_sessions", realm=ActorRealm)
_OF_USER = "realm = :realm AND subject = :subject"
FIND = SESSION.query("WHERE session = :session")
ADD = SESSION.insert()
# Of requests at the same moment the latest stands, and one that has been ended stays so.
TOUCH = Statement(SESSION.update("seen_at", "address", where="session = :session AND seen_at < :seen_at"))
LISTED = SESSION.query(f"WHERE {_OF_USER} ORDER BY started_at DESC LIMIT {LISTED_MAX}")
END = Statement(f"DELETE FROM console_sessions WHERE session = :session AND {_OF_USER}")
END_OTHERS = Statement(f"DELETE FROM console_sessions WHERE session <> :session AND {_OF_USER}")
FORGET = Statement(
    "DELETE FROM console_sessions WHERE session = ANY(ARRAY(SELECT session FROM console_sessions"
    f" WHERE ends_at <= CAST(:now AS TIMESTAMPTZ) LIMIT {FORGOTTEN_MAX} FOR UPDATE SKIP LOCKED))"
)


class PostgresConsoleSessions(PostgresRepository):
    async def add(self, session: ConsoleSession) -> None:
        self._connection.send(ADD, **SESSION.values(session))

    async def find(self, session: bytes) -> ConsoleSession | None:
        return next(iter(SESSION.all(await self._connection.rows(FIND, session=session))), None)

    async def touch(self, session: ConsoleSession) -> None:
        self._connection.send(TOUCH, session=session.session, seen_at=session.seen_at, address=session.address)

    async def of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        return SESSION.all(await self._connection.rows(LISTED, realm=realm.value, subject=subject))

    async def end(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        self._connection.send(END, realm=realm.value, subject=subject, session=session)

    async def end_others(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        self._connection.send(END_OTHERS, realm=realm.value, subject=subject, session=session)

    async def forget(self, now: datetime) -> None:
        self._connection.send(FORGET, now=now)
