"""What administrators do with gateways, on the memory store."""

from typing import Any

import pytest

from payagg.adapters.images import PillowImages
from payagg.adapters.providers import providers_of
from payagg.adapters.providers.looks import looks_of
from payagg.application.ports import Unavailable
from payagg.application.schemas.gateways import CreateGateway, UpdateGateway
from payagg.domain.business import BusinessStatus
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import GatewayStatus
from tests.support.builders import AN_ADMIN, NOW, a_business
from tests.support.gateway_world import DRAIN, ODD_NAMES, SEARCHES, TICK, GatewayWorld
from tests.support.images import an_image
from tests.support.refusals import refused_with

pytestmark = pytest.mark.anyio


def acme(**fields: Any) -> CreateGateway:
    return CreateGateway(**{"slug": "acme", "name": "Acme Pay", **fields})


async def test_a_new_gateway_is_disabled_and_listed() -> None:
    world = GatewayWorld()
    created = await world.gateways.create(acme(description="Cards", display_order=7), by=AN_ADMIN)
    assert (created.status, created.is_active, created.is_built_in, created.has_credentials) == (
        "DISABLED",
        False,
        False,
        False,
    )
    assert (created.description, created.display_order, created.created_at) == ("Cards", 7, NOW)
    assert await world.gateways.listed() == [created]
    assert (await world.gateways.detail(created.id)).overrides == []


async def test_a_slug_in_use_or_reserved_is_refused() -> None:
    world = GatewayWorld()
    await world.gateways.create(acme(), by=AN_ADMIN)
    for slug in ("acme", "builtin", "sandbox"):
        assert await refused_with(world.gateways.create(acme(slug=slug), by=AN_ADMIN)) == (
            ErrorCode.GATEWAY_SLUG_EXISTS,
            "slug",
        )
    assert len(await world.gateways.listed()) == 1


async def test_a_slug_must_match_to_its_last_character() -> None:
    assert await refused_with(GatewayWorld().gateways.create(acme(slug="acme\n"), by=AN_ADMIN)) == (
        ErrorCode.VALIDATION_ERROR,
        "slug",
    )


async def test_a_deleted_gateway_is_gone_and_its_slug_is_free() -> None:
    world = GatewayWorld()
    old = await world.gateways.create(acme(), by=AN_ADMIN)
    await world.gateways.delete(old.id, by=AN_ADMIN)
    assert await world.gateways.listed() == []
    for read in (world.gateways.detail, world.gateways.logo):
        assert (await refused_with(read(old.id)))[0] is ErrorCode.NOT_FOUND
    for change in (world.gateways.delete, world.gateways.enable):
        assert (await refused_with(change(old.id, by=AN_ADMIN)))[0] is ErrorCode.NOT_FOUND
    assert (await world.gateways.create(acme(), by=AN_ADMIN)).id != old.id


async def test_a_providers_slug_is_in_use_until_its_gateway_is_deleted_and_then_free_for_one() -> None:
    world = GatewayWorld(providers=providers_of("provider_a", "pay-b", allow_loopback=False))
    await world.gateways.seed("builtin", ["provider_a", "pay-b"])
    for slug in ("provider_a", "pay-b"):
        assert await refused_with(world.gateways.create(acme(slug=slug), by=AN_ADMIN)) == (
            ErrorCode.GATEWAY_SLUG_EXISTS,
            "slug",
        )
        await world.gateways.delete(f"gw_{slug}", by=AN_ADMIN)
        again = await world.gateways.create(acme(slug=slug), by=AN_ADMIN)
        assert (again.slug, again.status) == (slug, "DISABLED")
        assert again.id != f"gw_{slug}"
        assert await refused_with(world.gateways.create(acme(slug=slug), by=AN_ADMIN)) == (
            ErrorCode.GATEWAY_SLUG_EXISTS,
            "slug",
        )
    # An underscore is a provider's alone, whatever else looks like one.
    assert await refused_with(world.gateways.create(acme(slug="provider_c"), by=AN_ADMIN)) == (
        ErrorCode.VALIDATION_ERROR,
        "slug",
    )


async def test_seeding_brings_no_deleted_gateway_back_and_leaves_the_one_created_again_alone() -> None:
    world = GatewayWorld(providers=providers_of("provider_a", "provider_b", allow_loopback=False))
    await world.gateways.seed("builtin", ["provider_a"])
    await world.gateways.delete("gw_provider_a", by=AN_ADMIN)
    await world.gateways.seed("builtin", ["provider_a"])
    assert [gateway.slug for gateway in await world.gateways.listed()] == ["builtin"]
    again = await world.gateways.create(acme(slug="provider_a"), by=AN_ADMIN)
    await world.gateways.seed("builtin", ["provider_a"])
    assert [gateway.id for gateway in await world.gateways.listed() if gateway.slug == "provider_a"] == [again.id]


async def test_a_patch_changes_only_what_it_names() -> None:
    world = GatewayWorld()
    gateway = await world.gateways.create(acme(description="Cards", display_order=7), by=AN_ADMIN)
    world.clock.move(TICK)
    assert await world.gateways.update(gateway.id, UpdateGateway(), by=AN_ADMIN) == gateway
    renamed = await world.gateways.update(gateway.id, UpdateGateway(name="Acme"), by=AN_ADMIN)
    assert (renamed.name, renamed.description, renamed.display_order) == ("Acme", "Cards", 7)
    assert renamed.updated_at == NOW + TICK
    cleared = await world.gateways.update(gateway.id, UpdateGateway(description=None, display_order=0), by=AN_ADMIN)
    assert (cleared.name, cleared.description, cleared.display_order) == ("Acme", None, 0)


async def test_only_the_display_order_of_the_built_in_may_change() -> None:
    world = GatewayWorld()
    ids = await world.seeded()
    built_in = ids["builtin"]
    for field, command in (
        ("name", UpdateGateway(name="Other", display_order=3)),
        ("description", UpdateGateway(description=None)),
    ):
        assert await refused_with(world.gateways.update(built_in, command, by=AN_ADMIN)) == (
            ErrorCode.VALIDATION_ERROR,
            field,
        )
    assert (await world.gateways.update(built_in, UpdateGateway(display_order=3), by=AN_ADMIN)).display_order == 3
    assert await refused_with(world.gateways.disable(built_in, by=AN_ADMIN)) == (ErrorCode.GATEWAY_BUILT_IN, None)
    assert await refused_with(world.gateways.delete(built_in, by=AN_ADMIN)) == (ErrorCode.GATEWAY_BUILT_IN, None)
    assert await refused_with(world.gateways.enable(built_in, by=AN_ADMIN)) == (ErrorCode.GATEWAY_ALREADY_ENABLED, None)


async def test_a_drain_ends_at_its_instant_without_a_worker() -> None:
    world = GatewayWorld()
    gateway = (await world.seeded("acme"))["acme"]
    draining = await world.gateways.disable(gateway, by=AN_ADMIN)
    assert (draining.status, draining.drain_started_at, draining.drain_ends_at) == ("DRAINING", NOW, NOW + DRAIN)
    world.clock.set(NOW + DRAIN - TICK)
    assert (await world.gateways.detail(gateway)).status == "DRAINING"
    assert (await refused_with(world.gateways.delete(gateway, by=AN_ADMIN)))[0] is ErrorCode.GATEWAY_IN_USE
    world.clock.move(TICK)
    ended = await world.gateways.detail(gateway)
    assert (ended.status, ended.drain_started_at, ended.drain_ends_at) == ("DISABLED", None, None)
    assert [g.status for g in await world.gateways.listed() if g.id == gateway] == ["DISABLED"]
    assert (await refused_with(world.gateways.disable(gateway, by=AN_ADMIN)))[0] is ErrorCode.GATEWAY_NOT_ACTIVE
    assert (await world.stored(gateway)).status is GatewayStatus.DRAINING
    await world.gateways.delete(gateway, by=AN_ADMIN)


async def test_the_worker_makes_ended_drains_durable_and_leaves_the_others() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "later")
    await world.gateways.disable(ids["acme"], by=AN_ADMIN)
    world.clock.move(TICK)
    await world.gateways.disable(ids["later"], by=AN_ADMIN)
    world.clock.set(NOW + DRAIN)
    assert await world.gateways.end_drains() == 1
    assert (await world.stored(ids["acme"])).status is GatewayStatus.DISABLED
    assert (await world.stored(ids["acme"])).updated_at == NOW + DRAIN
    assert (await world.stored(ids["later"])).status is GatewayStatus.DRAINING
    assert await world.gateways.end_drains() == 0


async def test_enabling_a_draining_gateway_ends_the_drain_and_keeps_opt_outs() -> None:
    world = GatewayWorld()
    gateway = (await world.seeded("acme"))["acme"]
    await world.choose(gateway, is_enabled=False)
    assert (await refused_with(world.gateways.enable(gateway, by=AN_ADMIN)))[0] is ErrorCode.GATEWAY_ALREADY_ENABLED
    await world.gateways.disable(gateway, by=AN_ADMIN)
    assert (await refused_with(world.gateways.disable(gateway, by=AN_ADMIN)))[0] is ErrorCode.GATEWAY_NOT_ACTIVE
    enabled = await world.gateways.enable(gateway, by=AN_ADMIN)
    assert (enabled.status, enabled.drain_started_at, enabled.drain_ends_at) == ("ACTIVE", None, None)
    world.clock.move(DRAIN)
    detail = await world.gateways.detail(gateway)
    assert (detail.status, [o.business_id for o in detail.overrides]) == ("ACTIVE", ["biz_1"])


async def test_business_count_is_active_businesses_minus_their_opt_outs() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "other")
    await world.add(a_business("biz_2", "Bola"), a_business("biz_3", "Chidi"), a_business("biz_4", "Dayo"))
    for business in ("biz_1", "biz_2"):
        await world.choose(ids["acme"], business, is_enabled=False)
    await world.choose(ids["acme"], "biz_3", display_name="Cards")
    async with world.store.begin() as tx:
        await tx.businesses.save(a_business("biz_2", "Bola", BusinessStatus.SUSPENDED))
    counts = {gateway.slug: gateway.business_count for gateway in await world.gateways.listed()}
    assert counts == {"builtin": 3, "acme": 2, "other": 3}
    detail = await world.gateways.detail(ids["acme"])
    assert detail.business_count == 2
    assert [override.business_name for override in detail.overrides] == ["Ada's Shop", "Bola"]
    assert (await world.gateways.disable(ids["acme"], by=AN_ADMIN)).business_count == 2


async def test_every_active_business_is_a_merchant_configured_or_not() -> None:
    world = GatewayWorld()
    gateway = (await world.seeded("acme"))["acme"]
    await world.add(
        a_business("biz_2", "Bola", created_at=NOW + TICK), a_business("biz_3", "Off", BusinessStatus.RESTRICTED)
    )
    world.clock.move(2 * TICK)
    await world.choose(gateway, display_name="Cards", is_default=True, display_order=9)
    configured, bare = (await world.gateways.merchants(gateway, None, 1, 20))[0]
    assert (configured.id, configured.business_id, configured.created_at) == (
        f"{gateway}:biz_1",
        "biz_1",
        NOW + 2 * TICK,
    )
    assert (configured.display_name, configured.display_order, configured.is_default) == ("Cards", 9, True)
    assert (bare.id, bare.business_id, bare.business_name, bare.created_at) == ("biz_2", "biz_2", "Bola", NOW + TICK)
    assert (bare.is_enabled, bare.display_name, bare.display_order, bare.is_default) == (True, None, 1, False)


async def test_merchants_come_in_pages_by_name() -> None:
    world = GatewayWorld()
    gateway = (await world.seeded())["builtin"]
    await world.add(*(a_business(f"b{n}", f"Store {n}") for n in range(5)))
    pages = [await world.gateways.merchants(gateway, "store", page, 2) for page in (1, 2, 3, 4)]
    assert [[merchant.business_id for merchant in found] for found, _ in pages] == [
        ["b0", "b1"],
        ["b2", "b3"],
        ["b4"],
        [],
    ]
    assert {total for _, total in pages} == {5}


@pytest.mark.parametrize(("search", "found"), SEARCHES)
async def test_a_search_is_literal_and_ignores_case(search: str, found: list[str]) -> None:
    world = GatewayWorld()
    gateway = (await world.seeded())["builtin"]
    await world.add(*(a_business(f"b{number}", name) for number, name in enumerate(ODD_NAMES)))
    merchants, total = await world.gateways.merchants(gateway, search, 1, 100)
    assert [merchant.business_name for merchant in merchants] == found
    assert total == len(found)


async def test_seeding_again_changes_nothing_and_a_deleted_provider_stays_deleted() -> None:
    world = GatewayWorld()
    await world.gateways.seed("builtin", ["provider_a", "provider_b"])
    statuses = {gateway.slug: (gateway.status, gateway.is_built_in) for gateway in await world.gateways.listed()}
    assert statuses == {
        "builtin": ("ACTIVE", True),
        "provider_a": ("DISABLED", False),
        "provider_b": ("DISABLED", False),
    }
    await world.gateways.delete("gw_provider_b", by=AN_ADMIN)
    await world.gateways.enable("gw_provider_a", by=AN_ADMIN)
    before = await world.gateways.listed()
    await world.gateways.seed("builtin", ["provider_a", "provider_b"])
    assert await world.gateways.listed() == before


async def test_a_seeded_gateway_has_name_words_and_logo_until_an_administrator_changes_them() -> None:
    world = GatewayWorld()
    looks = looks_of("provider_a", "provider_b")
    await world.gateways.seed("builtin", ["provider_a"], looks)
    gateway = await world.gateways.detail("gw_provider_a")
    assert (gateway.name, gateway.description) == ("Paystack", "Card, bank transfer or USSD")
    assert looks["provider_a"].logo is not None
    assert (await world.gateways.logo("gw_provider_a")).content == looks["provider_a"].logo()
    await world.gateways.upload_logo("gw_provider_a", an_image(), by=AN_ADMIN)
    await world.gateways.seed("builtin", ["provider_a"], looks)
    assert (await world.gateways.logo("gw_provider_a")).content == an_image()


async def test_a_logo_store_that_is_away_costs_a_seeded_gateway_its_logo_and_no_start() -> None:
    world = GatewayWorld(logos=Away())
    await world.gateways.seed("builtin", ["provider_a"], looks_of("provider_a", "provider_b"))
    gateway = await world.gateways.detail("gw_provider_a")
    assert (gateway.name, gateway.logo_url) == ("Paystack", None)


@pytest.mark.parametrize("slug", ["provider_a", "provider_b"])
async def test_the_drawn_logos_are_images_that_an_administrator_could_upload(slug: str) -> None:
    drawn = looks_of("provider_a", "provider_b")[slug].logo
    assert drawn is not None
    logo = drawn()
    assert await PillowImages().kind(logo) == "png"
    assert len(logo) < 1_024


class Away:
    """A logo store that nobody reaches."""

    async def put(self, path: str, content: bytes) -> None:
        raise Unavailable("away")

    async def get(self, path: str) -> bytes | None:
        raise Unavailable("away")

    async def delete(self, path: str) -> None:
        raise Unavailable("away")
