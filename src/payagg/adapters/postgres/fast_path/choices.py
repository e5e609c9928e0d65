"""What businesses can offer their payers: every opening of a payer's page asks for it, so callers of one moment share
the reading. Gateways and health are the same for all of them."""

from sqlalchemy import any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.gateways import ALL, GATEWAY, SETTINGS
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.adapters.postgres.schema.tables import business_gateways
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports import GatewayChoices
from payagg.domain.gateway import BusinessGateway

BATCH_MAX, CONCURRENCY = 64, 2
OF_BUSINESSES = Statement(
    select(*SETTINGS.columns).where(
        business_gateways.c.business_id == any_(bindparam("business_ids", type_=ARRAY(Text)))
    )
)


class SharedChoices:
    def __init__(self, pool: StatementPool) -> None:
        self._pool = pool
        self._asked: Batch[str, GatewayChoices] = Batch(self._read, size=BATCH_MAX, concurrency=CONCURRENCY)

    async def of(self, business_id: str) -> GatewayChoices:
        """As committed at the moment of the call or later."""
        return await self._asked.ask(business_id)

    async def close(self) -> None:
        await self._asked.close()

    async def _read(self, business_ids: list[str]) -> list[GatewayChoices]:
        async with self._pool.transaction() as connection:
            gateways, settings, health = await connection.all(
                (ALL, {}), (OF_BUSINESSES, {"business_ids": list(set(business_ids))}), (ALL_HEALTH, {})
            )
        every, standing = GATEWAY.all(gateways), HEALTH.all(health)
        own: dict[str, dict[str, BusinessGateway]] = {}
        for one in SETTINGS.all(settings):
            own.setdefault(one.business_id, {})[one.gateway_id] = one
        return [GatewayChoices(every, own.get(business_id, {}), standing) for business_id in business_ids]
