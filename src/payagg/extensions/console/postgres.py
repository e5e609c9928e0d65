"""Console sessions as rows."""

from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.schema.tables import console_sessions
from payagg.adapters.postgres.statement import Statement
from payagg.domain.audit import ActorRealm
from payagg.extensions.console.ports import ConsoleSession

LISTED_MAX = 100  # sessions of one user
FORGOTTEN_MAX = 1_000  # at each sign-in
SESSION = RowMap(ConsoleSession, console_sessions, realm=ActorRealm)
_THIS = console_sessions.c.session == bindparam("session")
_OF_USER = (console_sessions.c.realm == bindparam("realm"), console_sessions.c.subject == bindparam("subject"))
FIND = Statement(select(*SESSION.columns).where(_THIS))
ADD = Statement(insert(console_sessions).values(parameters(*SESSION.names)))
# Of requests at the same moment the latest stands, and one that has been ended stays so.
TOUCH = Statement(
    update(console_sessions)
    .where(_THIS, console_sessions.c.seen_at < bindparam("seen_at"))
    .values(parameters("seen_at", "address"))
)
LISTED = Statement(
    select(*SESSION.columns).where(*_OF_USER).order_by(console_sessions.c.started_at.desc()).limit(in_text(LISTED_MAX))
)
END = Statement(delete(console_sessions).where(_THIS, *_OF_USER))
END_OTHERS = Statement(delete(console_sessions).where(console_sessions.c.session != bindparam("session"), *_OF_USER))
FORGET = Statement(
    "DELETE FROM console_sessions WHERE session = ANY(ARRAY(SELECT session FROM console_sessions"  # noqa: S608
    f" WHERE ends_at <= CAST(:now AS TIMESTAMPTZ) LIMIT {FORGOTTEN_MAX} FOR UPDATE SKIP LOCKED))"
)


class PostgresConsoleSessions(PostgresRepository):
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
