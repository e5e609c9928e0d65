"""Console sessions as rows."""

# ruff: noqa: S608 - our own words

from datetime import datetime

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.statement import Statement
from payagg.domain.audit import ActorRealm
from payagg.extensions.console.domain import ConsoleSession

LISTED_MAX = 100  # sessions of one user
FORGOTTEN_MAX = 1_000  # at each sign-in
SESSION = RowMap(ConsoleSession, "console_sessions", realm=ActorRealm)
_OF_USER = "realm = :realm AND subject = :subject"
FIND = SESSION.query("WHERE session = :session")
ADD = Statement(SESSION.insert())
# Of requests at the same moment the latest stands, and one that has been ended stays so.
TOUCH = Statement("""
UPDATE console_sessions SET seen_at = CAST(:seen_at AS timestamptz), address = :address
WHERE session = :session AND seen_at < CAST(:seen_at AS timestamptz)
""")
LISTED = SESSION.query(f"WHERE {_OF_USER} ORDER BY started_at DESC LIMIT {LISTED_MAX}")
END = Statement(f"DELETE FROM console_sessions WHERE session = :session AND {_OF_USER}")
END_OTHERS = Statement(f"DELETE FROM console_sessions WHERE session <> :session AND {_OF_USER}")
FORGET = Statement(
    "DELETE FROM console_sessions WHERE session = ANY(ARRAY(SELECT session FROM console_sessions"
    f" WHERE ends_at <= CAST(:now AS TIMESTAMPTZ) LIMIT {FORGOTTEN_MAX} FOR UPDATE SKIP LOCKED))"
)


class SessionRows(PostgresRepository):
    async def add(self, session: ConsoleSession) -> None:
        self._connection.send(ADD, **SESSION.values(session))

    async def find(self, session: bytes) -> ConsoleSession | None:
        """By its digest."""
        return next(iter(SESSION.all(await self._connection.rows(FIND, session=session))), None)

    async def touch(self, session: ConsoleSession) -> None:
        """Saves `seen_at` and `address`, unless the session ended or was seen later."""
        self._connection.send(TOUCH, session=session.session, seen_at=session.seen_at, address=session.address)

    async def of(self, realm: ActorRealm, subject: str) -> list[ConsoleSession]:
        """The user's sessions, newest first, at most LISTED_MAX."""
        return SESSION.all(await self._connection.rows(LISTED, realm=realm.value, subject=subject))

    async def end(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        """Removes the session of that digest if it is the user's."""
        self._connection.send(END, realm=realm.value, subject=subject, session=session)

    async def end_others(self, realm: ActorRealm, subject: str, session: bytes) -> None:
        """Removes all of the user's sessions except that one."""
        self._connection.send(END_OTHERS, realm=realm.value, subject=subject, session=session)

    async def forget(self, now: datetime) -> None:
        """Removes a batch of expired sessions."""
        self._connection.send(FORGET, now=now)
