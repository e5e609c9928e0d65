"""Revoked tokens as rows."""

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.rows import RowMap, parameters
from payagg.adapters.postgres.schema.accounts import token_revocations
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


class PostgresRevocations:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection

    async def add(self, revocation: Revocation) -> None:
        self._connection.send(ADD, **REVOCATION.values(revocation))
