"""What a business may choose for its own checkout, on the memory store."""

import pytest

from payagg.application.schemas.gateways import OrderedGateway, ReorderGateways
from payagg.domain.business import BusinessStatus
from payagg.domain.errors import ErrorCode
from tests.support.builders import AN_ADMIN, a_business
from tests.support.gateway_world import DRAIN, TICK, GatewayWorld
from tests.support.refusals import refused_with

pytestmark = pytest.mark.anyio


def an_order(**orders: int) -> ReorderGateways:
    return ReorderGateways(order=[OrderedGateway(gateway_id=id, display_order=order) for id, order in orders.items()])


async def slugs(world: GatewayWorld) -> list[str]:
    return [gateway.slug for gateway in await world.settings.listed("biz_1")]


async def test_a_business_that_never_chose_sees_every_active_gateway_enabled_and_the_built_in_first() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "other", "drained")
    await world.gateways.disable(ids["drained"], by=AN_ADMIN)
    listed = await world.settings.listed("biz_1")
    assert [gateway.slug for gateway in listed] == ["builtin", "acme", "other"]
    for gateway in listed:
        assert (gateway.is_enabled, gateway.business_display_order, gateway.display_name, gateway.is_default) == (
            True,
            None,
            None,
            False,
        )


async def test_a_change_touches_only_what_it_names_and_null_clears_the_name() -> None:
    world = GatewayWorld()
    acme = (await world.seeded("acme"))["acme"]
    named = await world.choose(acme, display_name="Cards", display_order=4, is_default=True)
    assert (named.display_name, named.business_display_order, named.is_default) == ("Cards", 4, True)
    kept = await world.choose(acme, is_enabled=True)
    assert (kept.display_name, kept.business_display_order, kept.is_default) == ("Cards", 4, True)
    assert (await world.choose(acme, display_name=None)).display_name is None


async def test_an_empty_change_leaves_no_trace() -> None:
    world = GatewayWorld()
    acme = (await world.seeded("acme"))["acme"]
    assert (await world.choose(acme)).is_enabled
    async with world.store.begin() as tx:
        assert await tx.gateways.settings("biz_1") == {}


async def test_disabling_clears_the_default_flag_and_enabling_does_not_bring_it_back() -> None:
    world = GatewayWorld()
    acme = (await world.seeded("acme"))["acme"]
    await world.choose(acme, is_default=True)
    off = await world.choose(acme, is_enabled=False)
    assert (off.is_enabled, off.is_default) == (False, False)
    assert not (await world.choose(acme, is_enabled=True)).is_default


async def test_a_disabled_gateway_cannot_become_the_default() -> None:
    world = GatewayWorld()
    acme = (await world.seeded("acme"))["acme"]
    refused = (ErrorCode.VALIDATION_ERROR, "isDefault")
    assert await refused_with(world.choose(acme, is_enabled=False, is_default=True)) == refused
    await world.choose(acme, is_enabled=False)
    assert await refused_with(world.choose(acme, is_default=True)) == refused
    assert (await world.choose(acme, is_enabled=True, is_default=True)).is_default


async def test_a_business_has_one_default_at_a_time_and_other_businesses_keep_theirs() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "other")
    await world.add(a_business("biz_2"))
    await world.choose(ids["acme"], "biz_2", is_default=True)
    await world.choose(ids["acme"], is_default=True)
    await world.choose(ids["other"], is_default=True)
    defaults = [gateway.slug for gateway in await world.settings.listed("biz_1") if gateway.is_default]
    assert defaults == ["other"]
    assert [gateway.slug for gateway in await world.settings.listed("biz_2") if gateway.is_default] == ["acme"]


async def test_the_built_in_can_be_renamed_and_made_default_but_neither_disabled_nor_reordered() -> None:
    world = GatewayWorld()
    built_in = (await world.seeded("acme"))["builtin"]
    assert await refused_with(world.choose(built_in, is_enabled=False)) == (ErrorCode.VALIDATION_ERROR, "isEnabled")
    assert await refused_with(world.choose(built_in, display_order=5)) == (ErrorCode.VALIDATION_ERROR, "displayOrder")
    changed = await world.choose(built_in, is_enabled=True, display_name="Transfer", is_default=True)
    assert (changed.display_name, changed.is_default) == ("Transfer", True)


async def test_a_gateway_that_is_not_active_is_not_there() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme")
    await world.gateways.disable(ids["acme"], by=AN_ADMIN)
    for moved in (TICK, DRAIN):
        world.clock.move(moved)
        assert await refused_with(world.choose(ids["acme"], display_name="x")) == (ErrorCode.NOT_FOUND, None)
    assert await refused_with(world.choose("gw_unknown")) == (ErrorCode.NOT_FOUND, None)


async def test_a_business_that_is_not_active_sees_its_gateways_and_changes_none() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme")
    await world.add(a_business("biz_2", status=BusinessStatus.RESTRICTED))
    assert len(await world.settings.listed("biz_2")) == 2
    assert (await refused_with(world.choose(ids["acme"], "biz_2", display_name="x")))[
        0
    ] is ErrorCode.BUSINESS_RESTRICTED
    order = an_order(**{ids["acme"]: 1})
    assert (await refused_with(world.settings.reorder("biz_2", order, by=AN_ADMIN)))[0] is ErrorCode.BUSINESS_RESTRICTED


async def test_a_reorder_moves_the_named_gateways_and_ignores_the_built_in() -> None:
    world = GatewayWorld()
    ids = await world.seeded("a1", "a2", "a3")
    await world.choose(ids["a3"], is_enabled=False, display_name="Third")
    await world.settings.reorder("biz_1", an_order(**{ids["a3"]: 0, ids["a1"]: 9, ids["builtin"]: 50}), by=AN_ADMIN)
    assert await slugs(world) == ["builtin", "a3", "a2", "a1"]
    built_in, third = (await world.settings.listed("biz_1"))[:2]
    assert built_in.business_display_order is None
    assert (third.business_display_order, third.is_enabled, third.display_name) == (0, False, "Third")


async def test_a_reorder_is_all_or_nothing() -> None:
    world = GatewayWorld()
    ids = await world.seeded("a1", "a2", "off")
    await world.gateways.disable(ids["off"], by=AN_ADMIN)
    before = await world.settings.listed("biz_1")
    refused = (ErrorCode.VALIDATION_ERROR, "order")
    assert (
        await refused_with(world.settings.reorder("biz_1", an_order(**{ids["a2"]: 0, ids["off"]: 1}), by=AN_ADMIN))
        == refused
    )
    assert (
        await refused_with(world.settings.reorder("biz_1", an_order(**{ids["a2"]: 0, "gw_unknown": 1}), by=AN_ADMIN))
        == refused
    )
    twice = ReorderGateways(order=[OrderedGateway(gateway_id=ids["a2"], display_order=n) for n in (0, 1)])
    assert await refused_with(world.settings.reorder("biz_1", twice, by=AN_ADMIN)) == refused
    assert await world.settings.listed("biz_1") == before


async def test_opting_out_keeps_the_gateway_in_the_list_so_that_it_can_be_turned_on_again() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme")
    await world.choose(ids["acme"], is_enabled=False)
    assert await slugs(world) == ["builtin", "acme"]
    await world.gateways.disable(ids["acme"], by=AN_ADMIN)
    await world.gateways.enable(ids["acme"], by=AN_ADMIN)
    assert [gateway.is_enabled for gateway in await world.settings.listed("biz_1")] == [True, False]
