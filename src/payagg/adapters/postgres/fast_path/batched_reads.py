"""What businesses can offer, and whose secrets sign events: every payer's page and every event reads it, so concurrent
callers share one read. Gateways and health are the same for all."""

from sqlalchemy import any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.gateways import ALL, GATEWAY, SETTINGS, SETTLING
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.adapters.postgres.schema.accounts import business_gateways
from payagg.adapters.postgres.statement import Statement
from payagg.application.ports.gateways import GatewayChoices
from payagg.domain.gateway import BusinessGateway, Gateway

BATCH_MAX, CONCURRENCY = 64, 2
OF_BUSINESSES = Statement(
    select(*SETTINGS.columns).where(
        business_gateways.c.business_id == any_(bindparam("business_ids", type_=ARRAY(Text)))
    )
)


class BatchedChoices:
    def __init__(self, pool: StatementPool) -> None:
        self._pool = pool
        self._asked: Batch[str, GatewayChoices] = Batch(self._read, size=BATCH_MAX, concurrency=CONCURRENCY)
        self._settling: Batch[str, list[Gateway]] = Batch(self._read_settling, size=BATCH_MAX, concurrency=CONCURRENCY)

    async def of(self, business_id: str) -> GatewayChoices:
        """As committed at the time of the call or later."""
        return await self._asked.ask(business_id)

    async def settling(self, slug: str) -> list[Gateway]:
        """As `of`."""
        return await self._settling.ask(slug)

    async def close(self) -> None:
        await self._asked.close()
        await self._settling.close()

    async def _read(self, business_ids: list[str]) -> list[GatewayChoices]:
        gateways, settings, health = await self._pool.all(
            (ALL, {}), (OF_BUSINESSES, {"business_ids": list(set(business_ids))}), (ALL_HEALTH, {})
        )
        every, standing = GATEWAY.all(gateways), HEALTH.all(health)
        own: dict[str, dict[str, BusinessGateway]] = {}
        for one in SETTINGS.all(settings):
            own.setdefault(one.business_id, {})[one.gateway_id] = one
        return [GatewayChoices(every, own.get(business_id, {}), standing) for business_id in business_ids]

    async def _read_settling(self, slugs: list[str]) -> list[list[Gateway]]:
        asked = list(set(slugs))
        found = await self._pool.all(*((SETTLING, {"slug": slug}) for slug in asked))
        gateways = {slug: GATEWAY.all(rows) for slug, rows in zip(asked, found, strict=True)}
        return [gateways[slug] for slug in slugs]
