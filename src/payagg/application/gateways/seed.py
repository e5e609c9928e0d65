"""The gateways that an installation has from its start: the built-in one and its providers'."""

from collections.abc import Mapping
from contextlib import suppress

from payagg.application.gateways.gateways import Gateways
from payagg.application.ports.outside import ObjectStore, Unavailable
from payagg.application.ports.providers import Branding
from payagg.application.use_case import retry_on_conflict
from payagg.domain.audit import Action, clock
from payagg.domain.gateway import Gateway, GatewayStatus


@retry_on_conflict
async def seed_gateways(gateways: Gateways, builtin_slug: str, brandings: Mapping[str, Branding]) -> None:
    """Creates the built-in gateway and the providers' once. Their ids are fixed: one that an administrator deleted
    stays deleted, and one created again under the same slug is not changed. `brandings` is by the providers' slugs."""
    now = gateways.clock.now()
    async with gateways.store.begin() as tx:
        has_built_in = any(gateway.is_built_in for gateway in await tx.gateways.all())
    if not has_built_in:
        built_in = Gateway(
            f"gw_{builtin_slug}",
            builtin_slug,
            "Built-in gateway",
            now,
            now,
            is_built_in=True,
            status=GatewayStatus.ACTIVE,
        )
        await _add(gateways, built_in)
    for order, (slug, branding) in enumerate(brandings.items(), start=1):
        id = f"gw_{slug}"
        async with gateways.store.begin() as tx:
            if await tx.gateways.get_any(id) is not None:
                continue
        logo = await _logo(gateways.logos, id, branding)
        await _add(gateways, Gateway(id, slug, branding.name, now, now, branding.description, logo, order))


async def _add(gateways: Gateways, gateway: Gateway) -> None:
    async with gateways.store.begin() as tx:
        if await tx.gateways.add(gateway):
            await gateways.record_change(tx, clock("seed"), Action.GATEWAY_CREATE, None, gateway)


async def _logo(logos: ObjectStore, gateway_id: str, branding: Branding) -> str | None:
    """The path of the branding's logo; None without a logo or when the store is away, as a server must start then,
    too. Processes that start together write the same file."""
    if branding.logo is None:
        return None
    path = f"{gateway_id}/seeded.png"
    with suppress(Unavailable):
        await logos.put(path, branding.logo.read_bytes())
        return path
    return None
