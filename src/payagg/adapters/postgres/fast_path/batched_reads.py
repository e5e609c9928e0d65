"""What businesses can offer, and whose secrets sign events: every payer's page and every event reads it, so concurrent
callers share one read. Gateways and health are the same for all."""

from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.repositories.gateways import ALL, GATEWAY, SETTINGS, SETTLING
from payagg.adapters.postgres.repositories.provider_events import ALL_HEALTH, HEALTH
from payagg.application.ports.gateways import GatewayChoices
from payagg.domain.gateway import BusinessGateway, Gateway

OF_BUSINESSES = SETTINGS.query("WHERE business_id = ANY(:business_ids)")


def batched_choices(pool: StatementPool) -> Batch[str, GatewayChoices]:
    """By the business's id; as committed at the time of the call or later."""

    async def read(business_ids: list[str]) -> list[GatewayChoices]:
        gateways, settings, health = await pool.all(
            (ALL, {}), (OF_BUSINESSES, {"business_ids": list(set(business_ids))}), (ALL_HEALTH, {})
        )
        every, standing = GATEWAY.all(gateways), HEALTH.all(health)
        own: dict[str, dict[str, BusinessGateway]] = {}
        for one in SETTINGS.all(settings):
            own.setdefault(one.business_id, {})[one.gateway_id] = one
        return [GatewayChoices(every, own.get(business_id, {}), standing) for business_id in business_ids]

    return Batch(read)


def batched_settling(pool: StatementPool) -> Batch[str, list[Gateway]]:
    """By slug; as `batched_choices`."""

    async def read(slugs: list[str]) -> list[list[Gateway]]:
        asked = list(set(slugs))
        found = await pool.all(*((SETTLING, {"slug": slug}) for slug in asked))
        gateways = {slug: GATEWAY.all(rows) for slug, rows in zip(asked, found, strict=True)}
        return [gateways[slug] for slug in slugs]

    return Batch(read)
