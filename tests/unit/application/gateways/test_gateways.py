"""What administrators do with gateways, on the memory store."""

import pytest
from payagg_testing.builders import AN_ADMIN, NOW, a_business

from payagg.domain.business import BusinessStatus
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import DRAIN_WINDOW, GatewayStatus
from tests.support.audit_trail import trail
from tests.support.gateway_world import DRAIN, TICK, GatewayWorld
from tests.support.refusals import refused_with


@pytest.mark.rule("limits.5", "audit.2")
async def test_a_drain_ends_at_its_instant_and_the_worker_makes_it_durable(world: GatewayWorld) -> None:
    ids = await world.seeded("acme", "later")
    gateway = ids["acme"]
    assert world.gateways.drain_window == DRAIN_WINDOW == DRAIN  # the setting's default, and the domain's
    draining = await world.gateways.disable(gateway, by=AN_ADMIN)
    assert (draining.status, draining.drain_started_at, draining.drain_ends_at) == ("DRAINING", NOW, NOW + DRAIN)
    world.clock.set(NOW + 2 * TICK)
    await world.gateways.disable(ids["later"], by=AN_ADMIN)
    world.clock.set(NOW + DRAIN - TICK)
    assert (await refused_with(world.gateways.delete(gateway, by=AN_ADMIN)))[0] is ErrorCode.GATEWAY_IN_USE
    world.clock.move(TICK)
    listed = next(one for one in await world.gateways.list_gateways() if one.id == gateway)
    for ended in (await world.gateways.detail(gateway), listed):
        assert (ended.status, ended.drain_started_at, ended.drain_ends_at) == ("DISABLED", None, None)
    assert (await refused_with(world.gateways.disable(gateway, by=AN_ADMIN)))[0] is ErrorCode.GATEWAY_NOT_ACTIVE
    assert (await world.stored(gateway)).status is GatewayStatus.DRAINING
    world.clock.move(TICK)
    assert [await world.gateways.end_drains() for _ in range(2)] == [1, 0]
    stored = await world.stored(gateway)
    assert (stored.status, stored.updated_at) == (GatewayStatus.DISABLED, NOW + DRAIN)
    assert (await world.stored(ids["later"])).status is GatewayStatus.DRAINING
    (told,) = trail(world.store, action="gateway.end_drain")
    assert (told[1], trail(world.store, subject="drains")) == (gateway, [told])
    await world.gateways.delete(gateway, by=AN_ADMIN)


@pytest.mark.rule("gateways.6")
async def test_enabling_a_draining_gateway_ends_the_drain_and_keeps_opt_outs(world: GatewayWorld) -> None:
    gateway = (await world.seeded("acme"))["acme"]
    await world.choose(gateway, is_enabled=False)
    await world.gateways.disable(gateway, by=AN_ADMIN)
    await world.gateways.enable(gateway, by=AN_ADMIN)
    world.clock.move(DRAIN)
    detail = await world.gateways.detail(gateway)
    assert (detail.status, [o.business_id for o in detail.overrides]) == ("ACTIVE", ["biz_1"])


@pytest.mark.rule("gateways.9")
async def test_business_count_is_active_businesses_minus_their_opt_outs(world: GatewayWorld) -> None:
    ids = await world.seeded("acme", "other")
    await world.add(a_business("biz_2", "Bola"), a_business("biz_3", "Chidi"), a_business("biz_4", "Dayo"))
    for business in ("biz_1", "biz_2"):
        await world.choose(ids["acme"], business, display_name="Pay")
        world.clock.move(TICK)
        await world.choose(ids["acme"], business, is_enabled=False)
    await world.choose(ids["acme"], "biz_3", display_name="Cards")
    await world.db.businesses.save(a_business("biz_2", "Bola", BusinessStatus.SUSPENDED))
    counts = {gateway.slug: gateway.business_count for gateway in await world.gateways.list_gateways()}
    assert counts == {"builtin": 3, "acme": 2, "other": 3}
    detail = await world.gateways.detail(ids["acme"])
    assert detail.business_count == 2
    changed = [(override.business_name, override.updated_at) for override in detail.overrides]
    assert changed == [("Ada's Shop", NOW + TICK), ("Bola", NOW + 2 * TICK)]
    assert (await world.gateways.disable(ids["acme"], by=AN_ADMIN)).business_count == 2


@pytest.mark.rule("gateways.10")
async def test_every_active_business_is_a_merchant_configured_or_not(world: GatewayWorld) -> None:
    gateway = (await world.seeded("acme"))["acme"]
    bola = a_business("biz_2", "Bola", created_at=NOW + TICK)
    await world.add(bola, a_business("biz_3", "Off", BusinessStatus.RESTRICTED))
    for change in ({"display_name": "Cards", "is_default": True}, {"display_order": 9}):
        world.clock.move(TICK)
        await world.choose(gateway, **change)
    configured, bare = (await world.gateways.merchants(gateway, None, 1, 20))[0]
    assert (configured.id, configured.business_id) == (f"{gateway}:biz_1", "biz_1")
    assert configured.created_at == NOW + TICK
    assert (configured.display_name, configured.display_order, configured.is_default) == ("Cards", 9, True)
    assert (bare.id, bare.business_id, bare.business_name, bare.created_at) == ("biz_2", "biz_2", "Bola", NOW + TICK)
    assert (bare.is_enabled, bare.display_name, bare.display_order, bare.is_default) == (True, None, 1, False)
    assert [await world.gateways.merchants(gateway, search, 1, 1) for search in ("BOL", "%")] == [([bare], 1), ([], 0)]
