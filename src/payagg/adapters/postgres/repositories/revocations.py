"""Revoked tokens as rows."""

from sqlalchemy import bindparam, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
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
_ROW = token_revocations.c
REVOKED = or_(
    exists().where(_ROW.claim == in_text(RevokedClaim.TOKEN.value), _ROW.value == bindparam("token_id")),
    exists().where(
        _ROW.claim == in_text(RevokedClaim.SUBJECT.value),
        _ROW.value == bindparam("subject"),
        _ROW.issued_before > bindparam("issued_at"),
    ),
)
IS_REVOKED = Statement(select(REVOKED))


class PostgresRevocations(PostgresRepository):
    async def add(self, revocation: Revocation) -> None:
        self._connection.send(ADD, **REVOCATION.values(revocation))
