"""Gateways on Postgres: the same rules, many callers at once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from payagg_testing.builders import AN_ADMIN

from payagg.adapters.logos import ObjectLogos
from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from payagg.application.schemas.gateways import CreateGateway
from payagg.domain.errors import Refusal
from payagg.domain.gateway import GatewayStatus
from tests.support.assembly import named
from tests.support.gateway_world import DRAIN, GatewayWorld, files_under
from tests.support.images import an_image


async def outcomes(*calls: Awaitable[Any]) -> Counter[str]:
    """How many calls succeeded and how many were refused with which code; anything else is raised."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Refusal):
            raise result
    return Counter(result.code.name if isinstance(result, Refusal) else "done" for result in results)


async def test_ended_drains_are_made_durable_and_locked_ones_left_for_the_next_round(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    ids = await world.seeded("acme", "other")
    for slug in ("acme", "other"):
        await world.gateways.disable(ids[slug], by=AN_ADMIN)
    world.clock.move(DRAIN)
    async with store.begin() as tx:
        await tx.gateways.lock(ids["acme"])
        assert await world.gateways.end_drains() == 1
    assert (await world.stored(ids["acme"])).status is GatewayStatus.DRAINING
    assert await world.gateways.end_drains() == 1
    assert (await world.stored(ids["acme"])).status is GatewayStatus.DISABLED


async def test_of_changes_at_once_each_leaves_one_state_that_fits(store: PostgresStore, tmp_path: Path) -> None:
    world = GatewayWorld(store, logos=ObjectLogos(tmp_path))
    slugs = ["a1", "provider_a"]
    assert await outcomes(*(seed_gateways(world.gateways, "builtin", named(*slugs)) for _ in range(8))) == {"done": 8}
    listed = await world.gateways.list_gateways()
    assert [gateway.slug for gateway in listed] == ["builtin", *slugs]
    command = CreateGateway(slug="acme", name="Acme")
    created = await outcomes(*(world.gateways.create(command, by=AN_ADMIN) for _ in range(16)))
    assert created == {"done": 1, "GATEWAY_SLUG_EXISTS": 15}
    one = listed[1].id
    images = [an_image(kind, colour=colour) for kind in ("PNG", "JPEG") for colour in ("red", "green")]
    uploads = await outcomes(*(world.gateways.upload_logo(one, content, by=AN_ADMIN) for content in images))
    assert uploads == {"done": 4}
    path = (await world.stored(one)).logo_path
    assert [str(left.relative_to(tmp_path)) for left in files_under(tmp_path) if one in str(left)] == [path]
    gone = [gateway.id for gateway in await world.gateways.list_gateways() if gateway.slug == "acme"] * 8
    assert (await outcomes(*(world.gateways.delete(id, by=AN_ADMIN) for id in gone))) == {"done": 1, "NOT_FOUND": 7}
