"""Revoked tokens, and ended sessions, as rows."""

from datetime import datetime

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.rows import RowMap, in_text, parameters
from payagg.adapters.postgres.schema.tables import ended_sessions, token_revocations
from payagg.adapters.postgres.statement import Statement
from payagg.domain.revocation import Revocation, RevokedClaim

REVOCATION = RowMap(Revocation, token_revocations, claim=RevokedClaim)
_NEW = insert(token_revocations).values(parameters(*REVOCATION.names))
ADD = Statement(
    _NEW.on_conflict_do_update(
        index_elements=["claim", "value"],
        set_={"issued_before": func.greatest(token_revocations.c.issued_before, _NEW.excluded.issued_before)},
    )
)
IS_REVOKED = Statement(
    "SELECT EXISTS (SELECT FROM token_revocations WHERE claim = 'jti' AND value = CAST(:token_id AS TEXT))"
    " OR EXISTS (SELECT FROM token_revocations WHERE claim = 'sub' AND value = CAST(:subject AS TEXT)"
    " AND issued_before > CAST(:issued_at AS TIMESTAMPTZ))",
    reads=True,
)

FORGET_MAX = 1_000  # sessions, at each sign-out
END_SESSION = Statement(
    insert(ended_sessions).values(parameters("session", "ends_at")).on_conflict_do_nothing(index_elements=["session"])
)
FORGET_SESSIONS = Statement(
    delete(ended_sessions).where(
        ended_sessions.c.session.in_(
            select(ended_sessions.c.session)
            .where(ended_sessions.c.ends_at <= bindparam("now"))
            .limit(in_text(FORGET_MAX))
            .with_for_update(skip_locked=True)
        )
    )
)
HAS_SESSION_ENDED = Statement(
    "SELECT EXISTS (SELECT FROM ended_sessions WHERE session = CAST(:session AS BYTEA))", reads=True
)


class PostgresRevocations:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection

    async def add(self, revocation: Revocation) -> None:
        self._connection.send(ADD, **REVOCATION.values(revocation))

    async def end_session(self, session: bytes, ends_at: datetime, now: datetime) -> None:
        self._connection.send(FORGET_SESSIONS, now=now)
        self._connection.send(END_SESSION, session=session, ends_at=ends_at)
