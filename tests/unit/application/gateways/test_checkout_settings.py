"""What a business may choose for its own checkout, on the memory store."""

import pytest
from payagg_testing.builders import AN_ADMIN

from payagg.application.schemas.gateways import OrderedGateway, ReorderGateways
from payagg.domain.errors import ErrorCode
from tests.support.gateway_world import GatewayWorld
from tests.support.refusals import refused_with

INVALID = ErrorCode.VALIDATION_ERROR


def an_order(**orders: int) -> ReorderGateways:
    return ReorderGateways(order=[OrderedGateway(gateway_id=id, display_order=order) for id, order in orders.items()])


async def test_a_change_touches_only_what_it_names_and_null_clears_the_name(world: GatewayWorld) -> None:
    ids = await world.seeded("acme")
    acme = ids["acme"]
    assert (await world.choose(acme)).is_enabled
    assert (await world.db.gateway_choices.of_business("biz_1")).settings == {}, "an empty change leaves no trace"
    await world.choose(acme, display_name="Cards", display_order=4, is_default=True)
    kept = await world.choose(acme, is_enabled=True)
    assert (kept.display_name, kept.business_display_order, kept.is_default) == ("Cards", 4, True)
    assert (await world.choose(acme, display_name=None)).display_name is None
    off = await world.choose(acme, is_enabled=False)
    assert (off.is_enabled, off.is_default) == (False, False)
    assert await refused_with(world.choose(ids["builtin"], is_enabled=False)) == (INVALID, "isEnabled")


@pytest.mark.rule("options.4")
async def test_a_reorder_moves_the_named_gateways_and_ignores_the_built_in(world: GatewayWorld) -> None:
    ids = await world.seeded("a1", "a2", "a3")
    await world.choose(ids["a3"], is_enabled=False, display_name="Third")
    await world.settings.reorder("biz_1", an_order(**{ids["a3"]: 0, ids["a1"]: 9, ids["builtin"]: 50}), by=AN_ADMIN)
    built_in, third, *rest = await world.settings.list_gateways("biz_1")
    assert [built_in.slug, third.slug, *(gateway.slug for gateway in rest)] == ["builtin", "a3", "a2", "a1"]
    assert built_in.business_display_order is None
    assert (third.business_display_order, third.is_enabled, third.display_name) == (0, False, "Third")
