"""Gateways on Postgres: the same rules, many callers at once, and what lies on the disk."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from payagg_testing.builders import AN_ADMIN, a_business

from payagg.adapters.logos import ObjectLogos
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.providers import providers_of
from payagg.application.schemas.gateways import (
    CreateGateway,
    OrderedGateway,
    ReorderGateways,
    UpdateCredentials,
)
from payagg.domain.business import BusinessStatus
from payagg.domain.errors import Refusal
from payagg.domain.gateway import GatewayStatus
from tests.support.gateway_world import DRAIN, ODD_NAMES, SEARCHES, GatewayWorld, files_under
from tests.support.images import an_image

pytestmark = pytest.mark.anyio


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


async def test_a_search_is_literal_and_ignores_case(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    gateway = (await world.seeded())["builtin"]
    await world.add(*(a_business(f"b{number}", name) for number, name in enumerate(ODD_NAMES)))
    for search, found in SEARCHES:
        merchants, total = await world.gateways.merchants(gateway, search, 1, 100)
        assert ([merchant.business_name for merchant in merchants], total) == (found, len(found)), search


async def test_merchants_counts_and_overrides_agree_with_the_choices(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    ids = await world.seeded("acme", "other")
    await world.add(a_business("biz_2", "bola"), a_business("biz_3", "Chidi"), a_business("biz_4", "Chidi"))
    for business in ("biz_1", "biz_2", "biz_3"):
        await world.choose(ids["acme"], business, is_enabled=False)
    await world.choose(ids["acme"], "biz_4", display_name="Cards", is_default=True)
    async with store.begin() as tx:
        await tx.businesses.save(a_business("biz_3", "Chidi", BusinessStatus.RESTRICTED))
    assert {g.slug: g.business_count for g in await world.gateways.listed()} == {"builtin": 3, "acme": 1, "other": 3}
    detail = await world.gateways.detail(ids["acme"])
    assert [override.business_id for override in detail.overrides] == ["biz_1", "biz_3", "biz_2"]
    merchants, total = await world.gateways.merchants(ids["acme"], None, 1, 2)
    assert ([merchant.id for merchant in merchants], total) == ([f"{ids['acme']}:biz_1", f"{ids['acme']}:biz_4"], 3)
    assert (merchants[1].display_name, merchants[1].is_default) == ("Cards", True)
    unconfigured, _ = await world.gateways.merchants(ids["other"], None, 2, 2)
    assert [(merchant.id, merchant.is_enabled) for merchant in unconfigured] == [("biz_2", True)]


@pytest.mark.rule("options.6")
async def test_many_new_defaults_at_once_leave_exactly_one(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    ids = await world.seeded("a1", "a2", "a3", "a4")
    several = list(ids.values())
    done = await outcomes(*(world.choose(several[n % len(several)], is_default=True) for n in range(64)))
    assert done == {"done": 64}
    assert sum(gateway.is_default for gateway in await world.settings.listed("biz_1")) == 1


async def test_a_default_and_an_opt_out_at_once_never_leave_a_disabled_default(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    acme = (await world.seeded("acme"))["acme"]
    for _ in range(5):
        await world.choose(acme, is_enabled=True)
        changes: list[dict[str, Any]] = [{"is_default": True}, {"is_enabled": False}] * 4
        await outcomes(*(world.choose(acme, **change) for change in changes))
        (_, own) = await world.settings.listed("biz_1")
        assert own.is_enabled or not own.is_default


async def test_reorders_at_once_end_in_one_of_them_and_keep_an_opt_out(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    ids = await world.seeded("a1", "a2", "a3")

    def order(*slugs: str) -> ReorderGateways:
        items = [OrderedGateway(gateway_id=ids[slug], display_order=place) for place, slug in enumerate(slugs)]
        return ReorderGateways(order=items)

    wanted = [("a1", "a2", "a3"), ("a3", "a2", "a1"), ("a2", "a3", "a1")]
    calls = [world.settings.reorder("biz_1", order(*slugs), by=AN_ADMIN) for slugs in wanted * 5]
    assert await outcomes(*calls, world.choose(ids["a2"], is_enabled=False)) == {"done": 16}
    listed = await world.settings.listed("biz_1")
    assert tuple(gateway.slug for gateway in listed[1:]) in wanted
    assert [gateway.slug for gateway in listed if not gateway.is_enabled] == ["a2"]


async def test_of_two_moves_at_once_one_is_refused(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    acme = (await world.seeded("acme"))["acme"]
    await world.gateways.disable(acme, by=AN_ADMIN)
    assert await outcomes(*(world.gateways.enable(acme, by=AN_ADMIN) for _ in range(8))) == {
        "done": 1,
        "GATEWAY_ALREADY_ENABLED": 7,
    }
    assert await outcomes(*(world.gateways.disable(acme, by=AN_ADMIN) for _ in range(8))) == {
        "done": 1,
        "GATEWAY_NOT_ACTIVE": 7,
    }
    world.clock.move(DRAIN)
    assert await outcomes(*(world.gateways.delete(acme, by=AN_ADMIN) for _ in range(8))) == {"done": 1, "NOT_FOUND": 7}


async def test_of_equal_slugs_at_once_one_is_created(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    command = CreateGateway(slug="acme", name="Acme")
    created = await outcomes(*(world.gateways.create(command, by=AN_ADMIN) for _ in range(16)))
    assert created == {"done": 1, "GATEWAY_SLUG_EXISTS": 15}


async def test_seeding_at_once_from_many_processes_makes_each_gateway_once(store: PostgresStore) -> None:
    world = GatewayWorld(store)
    seeds = await outcomes(*(world.gateways.seed("builtin", ["provider_a", "provider_b"]) for _ in range(8)))
    assert seeds == {"done": 8}
    assert [gateway.slug for gateway in await world.gateways.listed()] == ["builtin", "provider_a", "provider_b"]


async def test_uploads_at_once_leave_one_file_and_the_row_names_it(store: PostgresStore, tmp_path: Path) -> None:
    world = GatewayWorld(store, logos=ObjectLogos(tmp_path))
    acme = (await world.seeded("acme"))["acme"]
    images = [an_image(kind, colour=colour) for kind in ("PNG", "JPEG") for colour in ("red", "green", "blue")]
    assert await outcomes(*(world.gateways.upload_logo(acme, content, by=AN_ADMIN) for content in images)) == {
        "done": 6
    }
    (left,) = files_under(tmp_path)
    assert str(left.relative_to(tmp_path)) == (await world.stored(acme)).logo_path


@pytest.mark.rule("gateways.11")
async def test_a_dump_of_the_database_shows_no_credential(store: PostgresStore, database_url: str) -> None:
    world = GatewayWorld(store, providers=providers_of("provider_a", "provider_b", allow_loopback=False))
    acme = (await world.seeded("provider_a"))["provider_a"]
    secret = "sk_live_0123456789abcdef"
    for key in (secret, "sk_live_another"):
        await world.gateways.set_credentials(acme, UpdateCredentials(credentials={"liveSecretKey": key}), by=AN_ADMIN)
    assert (await world.stored(acme)).has_credentials
    assert (await world.stored(acme)).replaced_secrets is not None
    rows: dict[str, list[str]] = {}
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        names = await connection.execute("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in await names.fetchall():
            found = await connection.execute(f'SELECT t::text FROM "{name}" t')
            rows[name] = [row for (row,) in await found.fetchall()]
    dump = repr(rows)
    assert acme in dump
    for trace in (secret, secret.encode().hex(), "liveWebhookSecret"):
        assert trace not in dump
    # The audit trail alone tells which were set, by their names.
    assert "liveSecretKey" in repr(rows.pop("audit"))
    for name in ("liveSecretKey", b"liveSecretKey".hex()):
        assert name not in repr(rows)
