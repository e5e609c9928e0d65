"""Calls to providers, kept with what they answered."""

from sqlalchemy import (
    bindparam,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap, in_text, parameters
from payagg.adapters.postgres.schema.payments import provider_calls
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.payments import ProviderCall

CALL = RowMap(ProviderCall, provider_calls)
CALLS_MAX = 1_000
ADD_CALL = Statement(insert(provider_calls).values(parameters(*CALL.names)))
_CALLS = select(*CALL.columns).where(provider_calls.c.reference == bindparam("reference"))
CALLS = Statement(_CALLS.order_by(provider_calls.c.id).limit(in_text(CALLS_MAX)))
LAST_ANSWER = Statement(
    _CALLS.where(provider_calls.c.word.is_not(None)).order_by(provider_calls.c.id.desc()).limit(in_text(1))
)


class PostgresProviderCalls(PostgresRepository):
    async def add(self, call: ProviderCall) -> None:
        self._connection.send(ADD_CALL, **CALL.values(call))

    async def of_payment(self, reference: str) -> list[ProviderCall]:
        return CALL.all(await self._connection.rows(CALLS, reference=reference))

    async def last_answer(self, reference: str) -> ProviderCall | None:
        return CALL.from_row(await self._connection.row(LAST_ANSWER, reference=reference))
