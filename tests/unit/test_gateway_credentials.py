"""Credentials: replaced in full, sealed for one gateway alone, readable across a rotation, never shown."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from payagg.adapters.memory import MemoryStore
from payagg.adapters.providers import providers_of
from payagg.adapters.security import AesVault
from payagg.application.payment_options import PaymentOptions
from payagg.application.ports import Transaction
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway
from tests.support.assembly import KEYS
from tests.support.builders import AN_ADMIN
from tests.support.gateway_world import GatewayWorld

pytestmark = pytest.mark.anyio

NEW_KEY = ("second", b"2" * 32)


async def opened(world: GatewayWorld, gateway_id: str) -> Mapping[str, str]:
    offers = PaymentOptions(world.store, world.clock, world.vault, world.providers)
    return offers.credentials(await world.stored(gateway_id))


async def set_credentials(world: GatewayWorld, gateway_id: str, **credentials: str) -> None:
    await world.gateways.set_credentials(gateway_id, UpdateCredentials(credentials=credentials), by=AN_ADMIN)


async def test_credentials_replace_the_previous_ones_in_full() -> None:
    world = GatewayWorld()
    acme = (await world.seeded("acme"))["acme"]
    assert not (await world.gateways.detail(acme)).has_credentials
    await set_credentials(world, acme, first="one", second="two")
    await set_credentials(world, acme, third="₦")
    assert await opened(world, acme) == {"third": "₦"}
    assert (await world.gateways.detail(acme)).has_credentials


async def test_no_view_and_no_stored_byte_shows_a_credential() -> None:
    world = GatewayWorld()
    acme = (await world.seeded("acme"))["acme"]
    await set_credentials(world, acme, liveSecretKey="sk_live_0123456789")
    shown = [await world.gateways.listed(), await world.gateways.detail(acme), await world.settings.listed("biz_1")]
    assert b"sk_live" not in msgspec.json.encode(shown)
    stored = (await world.stored(acme)).credentials or b""
    assert b"sk_live" not in stored
    assert b"liveSecretKey" not in stored


async def test_a_blob_opens_only_for_the_gateway_it_was_sealed_for() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "other")
    await set_credentials(world, ids["acme"], key="of acme")
    await set_credentials(world, ids["other"], key="of other")
    async with world.store.begin() as tx:
        swapped = replace(
            await world_gateway(tx, ids["acme"]), credentials=(await world_gateway(tx, ids["other"])).credentials
        )
        await tx.gateways.save(swapped)
    assert await opened(world, ids["acme"]) == {}
    assert await opened(world, ids["other"]) == {"key": "of other"}


async def world_gateway(tx: Transaction, gateway_id: str) -> Gateway:
    gateway = await tx.gateways.get(gateway_id)
    assert gateway is not None
    return gateway


async def test_after_a_key_rotation_old_blobs_open_and_new_ones_use_the_new_key() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "other")
    await set_credentials(world, ids["acme"], key="before")
    world.clock.move(timedelta(milliseconds=1))  # what is drawn later has other ids
    rotated = GatewayWorld(world.store, world.clock, vault=AesVault((NEW_KEY, *KEYS)))
    await set_credentials(rotated, ids["other"], key="after")
    assert await opened(rotated, ids["acme"]) == {"key": "before"}
    only_new = GatewayWorld(world.store, vault=AesVault((NEW_KEY,)))
    assert await opened(only_new, ids["other"]) == {"key": "after"}
    assert await opened(only_new, ids["acme"]) == {}
    # Storing them again moves the gateway to the new key; then the old one may go.
    await set_credentials(rotated, ids["acme"], key="again")
    assert await opened(only_new, ids["acme"]) == {"key": "again"}


@pytest.mark.parametrize(
    ("slug", "name", "value"),
    [
        ("provider_a", "liveSecretKey", "sk_test_" + "0" * 40),
        ("provider_a", "sandboxSecretKey", "sk_live_" + "0" * 40),
    ],
)
async def test_a_key_under_the_wrong_environment_is_refused_and_changes_nothing(
    slug: str, name: str, value: str
) -> None:
    world = GatewayWorld(providers=providers_of("provider_a", "provider_b", allow_loopback=False))
    gateway = (await world.seeded(slug))[slug]
    await set_credentials(world, gateway, kept="yes")
    with pytest.raises(Refusal) as refused:
        await set_credentials(world, gateway, **{name: value})
    assert (refused.value.code, refused.value.field) == (ErrorCode.VALIDATION_ERROR, f"credentials.{name}")
    assert value not in refused.value.message
    assert await opened(world, gateway) == {"kept": "yes"}


async def test_deleting_a_gateway_forgets_its_credentials() -> None:
    store = MemoryStore()
    world = GatewayWorld(store)
    created = (await world.seeded("acme"))["acme"]
    await set_credentials(world, created, key="secret")
    await world.gateways.disable(created, by=AN_ADMIN)
    world.clock.move(world.gateways.drain_window)
    await world.gateways.delete(created, by=AN_ADMIN)
    assert store.state.gateways[created].credentials is None
