"""Credentials: replaced in full, sealed for one gateway alone, readable across a rotation, never shown."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest
from payagg_testing.builders import AN_ADMIN, HOUR, SECOND
from payagg_testing.memory import MemoryStore

from payagg.adapters.providers.registry import providers_of
from payagg.adapters.security import AesVault
from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.gateways.readiness import gateway_readiness, try_credentials
from payagg.application.reports.explain import timeline
from payagg.application.schemas.gateways import CreateGateway, UpdateCredentials
from payagg.domain.errors import ErrorCode, must_exist
from payagg.domain.gateway import OVERLAP, PROVES_FOR, SETTLING_MAX, Gateway, UnavailableReason
from payagg.domain.health import Health
from payagg.domain.payment import Status
from payagg.domain.report import FaultKind, Outcome
from payagg.domain.values import Environment
from tests.support.gateway_world import TICK, GatewayWorld
from tests.support.memory_shop import MemoryShop
from tests.support.refusals import refused_with
from tests.support.state_machine.scripted import ACCOUNT

A, B = "gw_provider_a", "gw_provider_b"
NOT_CONFIGURED = UnavailableReason.NOT_CONFIGURED
NEW_KEY = ("second", b"2" * 32)


@pytest.fixture
async def world() -> GatewayWorld:
    """With both providers, their gateways A and B."""
    world = GatewayWorld(providers=providers_of(allow_loopback=False))
    await world.seeded("provider_a", "provider_b")
    return world


async def opened(world: GatewayWorld, gateway_id: str) -> Mapping[str, str]:
    return GatewayCredentials(world.vault, world.providers).current(await world.stored(gateway_id))


async def set_credentials(world: GatewayWorld, gateway_id: str, **credentials: str) -> list[str]:
    """The names that are no longer on file."""
    command = UpdateCredentials(credentials=credentials)
    return (await world.gateways.set_credentials(gateway_id, command, by=AN_ADMIN)).removed


async def change_some(world: GatewayWorld, **credentials: str) -> list[str]:
    """Of A; the others stay."""
    command = UpdateCredentials(credentials=credentials, keep_others=True)
    return (await world.gateways.set_credentials(A, command, by=AN_ADMIN)).removed


@pytest.mark.rule("gateways.11", "gateways.12")
async def test_credentials_replace_the_previous_ones_and_open_for_their_gateway_alone() -> None:
    world = GatewayWorld()
    ids = await world.seeded("acme", "other")
    assert not (await world.gateways.detail(ids["acme"])).has_credentials
    await set_credentials(world, ids["acme"], first="one", second="two")
    await set_credentials(world, ids["acme"], liveSecretKey="sk_live_₦")
    assert await opened(world, ids["acme"]) == {"liveSecretKey": "sk_live_₦"}
    detail = await world.gateways.detail(ids["acme"])
    acme, other = await world.stored(ids["acme"]), await world.stored(ids["other"])
    assert detail.has_credentials
    shown = [await world.gateways.list_gateways(), detail, await world.settings.list_gateways("biz_1")]
    told = msgspec.json.encode(shown) + (acme.credentials or b"")
    assert (b"sk_live" in told, b"liveSecretKey" in told) == (False, False)
    await world.db.gateways.save(replace(other, credentials=acme.credentials))
    assert await opened(world, ids["other"]) == {}


async def signing(world: GatewayWorld, gateway_id: str, environment: Environment) -> list[str]:
    """The secrets that prove an event now, of a deleted gateway too."""
    gateway = await world.db.gateways.get_any(gateway_id)
    assert gateway is not None
    found = GatewayCredentials(world.vault, world.providers).signing(gateway, environment, world.clock.now())
    return [secret for one in found for secret in one.values()]


@pytest.mark.rule("gateways.20")
async def test_a_rotation_keeps_the_old_signing_secret_for_a_day_and_nothing_else(world: GatewayWorld) -> None:
    await set_credentials(world, B, livePublicKey="PZ78-PKLIVE-1", liveSigningSecret="one")
    await set_credentials(world, B, livePublicKey="PZ78-PKLIVE-2", liveSigningSecret="two")
    assert await signing(world, B, Environment.LIVE) == ["two", "one"]
    assert await signing(world, B, Environment.SANDBOX) == []
    kept = world.vault.open((await world.stored(B)).replaced_secrets or b"", f"{B}:replaced")
    # What calls the provider is not kept, only what proves its events.
    assert (b"one" in kept, b"PKLIVE" in kept) == (True, False)
    for wait, proving in ((OVERLAP - TICK, ["two", "one"]), (TICK, ["two"])):
        world.clock.move(wait)
        assert await signing(world, B, Environment.LIVE) == proving
    assert (await world.stored(B)).replaced_secrets is not None
    assert await world.settling.wipe() == 1
    stored = await world.stored(B)
    assert (stored.replaced_secrets, stored.has_credentials) == (None, True)


@pytest.mark.rule("gateways.21")
async def test_a_webhook_secret_signs_beside_the_key_until_the_overlap_is_ended(world: GatewayWorld) -> None:
    await set_credentials(world, A, liveSecretKey="sk_live_1", sandboxEnabled="false")
    found, gateway = GatewayCredentials(world.vault, world.providers), await world.stored(A)
    unready = [found.unready(gateway, environment) for environment in (Environment.SANDBOX, Environment.LIVE)]
    assert unready == [UnavailableReason.DISABLED, None]
    for key in ("sk_live_1", "sk_live_2"):
        await set_credentials(world, A, liveSecretKey=key, liveWebhookSecret="own")
        assert await signing(world, A, Environment.LIVE) == ["own", "sk_live_1"]
    for _ in range(2):
        await world.gateways.end_overlap(A, by=AN_ADMIN)
        assert await signing(world, A, Environment.LIVE) == ["own"]
    assert (await world.stored(A)).replaced_secrets is None
    assert (await refused_with(world.gateways.end_overlap("gw_none", by=AN_ADMIN)))[0] is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_secret_that_proves_live_events_is_no_sandbox_secret(world: GatewayWorld, is_deleted: bool) -> None:
    """Whoever has that of the sandbox could write events of real money."""
    await set_credentials(world, B, livePublicKey="PZ78-PKLIVE-1", liveSigningSecret="one")
    gateway_id = B
    if is_deleted:
        await world.gateways.disable(B, by=AN_ADMIN)
        world.clock.move(HOUR)
        await world.gateways.delete(B, by=AN_ADMIN)
        await world.settling.wipe()
        assert await signing(world, B, Environment.LIVE) == ["one"]
        command = CreateGateway(slug="provider_b", name="Provider B")
        gateway_id = (await world.gateways.create(command, by=AN_ADMIN)).id
    for _ in range(2):
        code, name = await refused_with(set_credentials(world, gateway_id, sandboxSigningSecret="one"))
        assert (code, name) == (ErrorCode.VALIDATION_ERROR, "credentials.sandboxSigningSecret")
        await set_credentials(world, gateway_id, sandboxSigningSecret="two", liveSigningSecret="three")
    world.clock.move(PROVES_FOR if is_deleted else OVERLAP)
    await set_credentials(world, gateway_id, sandboxSigningSecret="one")


@pytest.mark.parametrize(
    ("gateway_id", "both", "left"),
    [
        (A, {"liveSecretKey": "sk_live_1", "liveWebhookSecret": "own"}, {"liveWebhookSecret": "own"}),
        (B, {"livePublicKey": "PZ78-PKLIVE-1", "liveSigningSecret": "own"}, {"liveSigningSecret": "own"}),
    ],
)
async def test_a_signing_secret_proves_events_though_the_key_beside_it_is_gone(
    world: GatewayWorld, gateway_id: str, both: dict[str, str], left: dict[str, str]
) -> None:
    """Charges under way are still told of, and nobody can ask about them."""
    await set_credentials(world, gateway_id, **both)
    await set_credentials(world, gateway_id, **left)
    assert await signing(world, gateway_id, Environment.LIVE) == ["own"]
    assert await signing(world, gateway_id, Environment.SANDBOX) == []


async def test_what_is_named_alone_changes_where_the_others_are_kept(world: GatewayWorld) -> None:
    await set_credentials(world, A, sandboxSecretKey="sk_test_1", liveSecretKey="sk_live_1", note="x")
    assert await change_some(world, liveWebhookSecret="w", note="", gone="") == ["note"]
    kept = {"sandboxSecretKey": "sk_test_1", "liveSecretKey": "sk_live_1", "liveWebhookSecret": "w"}
    assert await opened(world, A) == kept
    # The whole is checked: both environments must not sign with one secret.
    shared = await refused_with(change_some(world, sandboxWebhookSecret="w"))
    assert shared[1] == "credentials.liveWebhookSecret"
    assert (await refused_with(change_some(world, **dict.fromkeys(kept, ""))))[1] == "credentials"


def without_its_key(world: GatewayWorld) -> GatewayWorld:
    """The same gateways, by a process that was given another encryption key."""
    world.clock.move(timedelta(milliseconds=1))  # what is drawn later has other ids
    return GatewayWorld(world.store, world.clock, vault=AesVault((NEW_KEY,)), providers=world.providers)


async def test_credentials_that_do_not_open_are_not_lost_by_a_change_of_one(world: GatewayWorld) -> None:
    await set_credentials(world, A, sandboxSecretKey="sk_test_1", liveSecretKey="sk_live_1")
    refused = await refused_with(change_some(without_its_key(world), sandboxSecretKey="sk_test_2"))
    assert refused == (ErrorCode.VALIDATION_ERROR, "keepOthers")
    assert await opened(world, A) == {"sandboxSecretKey": "sk_test_1", "liveSecretKey": "sk_live_1"}


@pytest.mark.parametrize("ever_opens", [True, False])
async def test_a_deleted_gateways_secrets_that_do_not_open_wait_for_their_key_until_they_would_prove_nothing(
    world: GatewayWorld, ever_opens: bool
) -> None:
    await set_credentials(world, A, liveSecretKey="sk_live_1")
    await world.gateways.disable(A, by=AN_ADMIN)
    world.clock.move(world.gateways.drain_window)
    await world.gateways.delete(A, by=AN_ADMIN)
    assert await without_its_key(world).settling.wipe() == 0
    if ever_opens:
        assert await world.settling.wipe() == 1
        assert await signing(world, A, Environment.LIVE) == ["sk_live_1"]
    else:
        world.clock.move(PROVES_FOR)
        assert await without_its_key(world).settling.wipe() == 1
        assert isinstance(world.store, MemoryStore)  # no repository shows it any more
        assert world.store.state.gateways[A].credentials is None


async def test_a_replaced_secret_that_does_not_open_is_none_and_stops_no_rotation(world: GatewayWorld) -> None:
    await set_credentials(world, A, liveSecretKey="sk_live_1")
    await set_credentials(world, A, liveSecretKey="sk_live_2")
    only_new = without_its_key(world)
    assert await signing(only_new, A, Environment.LIVE) == []
    await set_credentials(only_new, A, liveSecretKey="sk_live_3")
    assert await signing(only_new, A, Environment.LIVE) == ["sk_live_3"]


async def test_a_provider_that_refused_a_key_is_chosen_again_with_another(world: GatewayWorld) -> None:
    """At once, and where the key is another one alone: an outage is not over because a signing secret changed."""
    await set_credentials(world, A, sandboxSecretKey="sk_test_1", liveSecretKey="sk_live_wrong")
    until = world.clock.now() + Health.LONGEST_PAUSE
    for environment in Environment:
        await world.db.health.save(Health("provider_a", environment, 5, until, Health.LONGEST_PAUSE))
    await set_credentials(world, A, sandboxSecretKey="sk_test_1", sandboxWebhookSecret="w", liveSecretKey="sk_live_1")
    paused = {one.environment: one.is_open(world.clock.now()) for one in await world.db.health.all()}
    assert paused == {Environment.SANDBOX: True, Environment.LIVE: False}


async def deleted(shop: MemoryShop) -> str:
    """The id of provider_a's gateway."""
    gateways, gateway = shop.services.gateways, must_exist(await shop.gateway("provider_a"))
    await gateways.disable(gateway.id, by=AN_ADMIN)
    shop.clock.move(gateways.drain_window)
    await gateways.delete(gateway.id, by=AN_ADMIN)
    return gateway.id


async def a_successor(shop: MemoryShop) -> str:
    """The id of another gateway of provider_a, of another account."""
    gateways = shop.services.gateways
    made = await gateways.create(CreateGateway(slug="provider_a", name="Provider A"), by=AN_ADMIN)
    await gateways.set_credentials(made.id, UpdateCredentials(credentials={ACCOUNT: "another"}), by=AN_ADMIN)
    await gateways.enable(made.id, by=AN_ADMIN)
    return made.id


async def stored(shop: MemoryShop, gateway_id: str) -> Gateway:
    return must_exist(await shop.store.transaction.gateways.get_any(gateway_id))


@pytest.mark.rule("gateways.16", "gateways.17", "gateways.18")
async def test_what_a_deleted_gateway_was_handed_settles_by_its_own_credentials(shop: MemoryShop) -> None:
    paid, asked, fresh = await shop.handed_over(), await shop.handed_over(), await shop.initiated()
    unanswered, shop.a.start_fault = await shop.initiated(), FaultKind.TIMEOUT
    await refused_with(shop.process(unanswered))
    shop.a.start_fault = None
    old = await deleted(shop)
    assert await shop.services.gateway_settling.wipe() == 0
    listed = (await shop.checkout.options(fresh)).gateways
    assert [option.slug for option in listed] == ["builtin", "provider_b", "sandbox"]
    assert await refused_with(shop.process(fresh)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    assert (await shop.process(paid)).gateway == "provider_a"  # the hand-off that the payer was given stands
    assert len(shop.a.started) == 3
    made = await a_successor(shop)
    shop.says(Outcome.SUCCEEDED)
    assert (await refused_with(shop.process(unanswered)))[0] is ErrorCode.PAYMENT_ALREADY_PROCESSED
    await shop.reconciler.run_once()
    new = await shop.handed_over()
    for reference in (paid, asked, new):
        assert (await shop.verification.verify(reference)).status is Status.SUCCESS
    attempts = [(await shop.attempts(reference))[0] for reference in (paid, asked, new)]
    assert [attempt.gateway_id for attempt in attempts] == [old, old, made]
    accounts = {charge.reference: charge.credentials[ACCOUNT] for charge in shop.a.fetched}
    assert accounts == {**dict.fromkeys((paid, asked, unanswered), "account of provider_a"), new: "another"}


@pytest.mark.rule("gateways.19")
async def test_secrets_go_when_the_last_open_attempt_ends_or_after_72_hours(shop: MemoryShop) -> None:
    payment, gateway_id = await shop.handed_over(), await deleted(shop)
    told = f"gateway     {gateway_id} (provider_a) deleted; its credentials"
    assert any(f"{told} stay for settling" in line for line in await timeline(shop.store, payment))
    shop.says(Outcome.UNPAID)
    due: datetime | None = shop.clock.now()
    while due is not None:
        assert await shop.services.gateway_settling.wipe() == 0
        shop.clock.set(max(due, shop.clock.now()))
        await shop.reconciler.run_once()
        due = (await shop.attempts(payment))[-1].next_ask_at
    assert (await shop.payment(payment)).status is Status.FAILED
    assert await shop.services.gateway_settling.wipe() == 1
    assert not (await stored(shop, gateway_id)).has_credentials
    assert any(f"{told} are wiped" in line for line in await timeline(shop.store, payment))

    other = await MemoryShop().open()
    silent, gateway_id = await other.handed_over(), await deleted(other)
    other.clock.move(SETTLING_MAX - SECOND)
    assert await other.services.gateway_settling.wipe() == 0
    other.clock.move(SECOND)
    assert await other.services.gateway_settling.wipe() == 1
    assert not (await stored(other, gateway_id)).has_credentials
    await a_successor(other)  # it may have another account, and is not asked
    assert (await refused_with(other.verification.verify(silent)))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE


@pytest.mark.parametrize("own", Environment)
async def test_credentials_of_one_environment_serve_that_one_alone(shop: MemoryShop, own: Environment) -> None:
    """A payment of the other is neither offered the gateway, nor charged there, nor asked about."""
    [other] = {*Environment} - {own}
    sent = {one: await shop.handed_over(environment=one) for one in Environment}
    fresh = {one: await shop.initiated(one) for one in Environment}
    unanswered = await shop.initiated(other)
    shop.a.start_faults = [FaultKind.TIMEOUT]
    await refused_with(shop.process(unanswered))
    await shop.change("provider_b", credentials=None)
    await shop.change("provider_a", credentials=shop.sealed("provider_a", only=own.value))
    shop.a.started.clear()
    options, entropy = shop.checkout.payment_options, shop.checkout.entropy
    ready = (await gateway_readiness(options, A)).environments
    assert {one.environment: one.unavailable_reason for one in ready} == {own: None, other: NOT_CONFIGURED}
    account = f"{own.value} account of provider_a"
    assert options.gateway_credentials.accounts(await stored(shop, A)) == {own: account}
    for one in Environment:
        listed = {option.slug: option for option in (await shop.checkout.options(fresh[one])).gateways}
        assert listed["provider_a"].unavailable_reason is (None if one is own else NOT_CONFIGURED)
        async with shop.store.begin() as tx:
            assert (await options.of_slug(tx, "provider_a", one) is not None) is (one is own)
    missing = ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED
    assert (await try_credentials(options, entropy, A, own, by=AN_ADMIN)).is_accepted
    assert (await refused_with(try_credentials(options, entropy, A, other, by=AN_ADMIN)))[0] is missing
    assert (await shop.process(fresh[own])).status is Status.PENDING
    assert (await refused_with(shop.process(fresh[other])))[0] is missing
    await refused_with(shop.process(unanswered))
    if own is Environment.SANDBOX:
        assert (await refused_with(shop.initiated(other)))[0] is ErrorCode.NO_GATEWAY_AVAILABLE
    else:
        assert await shop.initiated(own)
    [attempt] = await shop.attempts(fresh[own])
    assert attempt.account == account
    shop.says(Outcome.FAILED)
    shop.clock.move(HOUR)
    assert (await shop.verification.verify(sent[own])).status is Status.FAILED, "its own account says so"
    assert (await refused_with(shop.verification.verify(sent[other])))[0] is ErrorCode.GATEWAY_NOT_AVAILABLE
    await shop.reconciler.run_once()
    assert {charge.environment for charge in (*shop.a.started, *shop.a.fetched)} == {own}
