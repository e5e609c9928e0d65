"""Which secrets prove a provider's event, across rotations; what is kept of the rest, and what other credentials may
not do."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, HOUR
from payagg_testing.memory import MemoryStore

from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.transport import Transport
from payagg.application import telemetry
from payagg.application.payments.refused_events import KEPT_FOR, harmless
from payagg.application.schemas.gateways import UpdateCredentials
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import CHECK_AFTER
from payagg.domain.errors import ErrorCode
from payagg.domain.health import Health
from payagg.domain.payment import Status
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.integration.http.providers.test_inbound import charge_event
from tests.support.audit_trail import entries
from tests.support.provider_rigs import SECRET_KEYS, credentials_a
from tests.support.provider_world import StoreWorld, world_in_memory
from tests.support.refusals import refused_with

World = StoreWorld[MemoryStore]

SANDBOX_ROUTE, LIVE_ROUTE, ALIAS = PROVIDERS[0].routes
OLD = SECRET_KEYS["test"]
TICK = timedelta(microseconds=1)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_in_memory(tmp_path) as world:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER
        yield world


def signed(body: bytes, secret: str) -> dict[str, str]:
    return {"x-provider_a-signature": hmac.new(secret.encode(), body, hashlib.sha512).hexdigest()}


async def refuse(world: World, body: bytes, headers: Mapping[str, str], route: Any = LIVE_ROUTE) -> ErrorCode:
    return (await refused_with(world.services.provider_events.receive(route, body, headers)))[0]


@pytest.mark.rule("gateways.23")
async def test_refused_events_are_counted_by_why_and_kept_for_a_day(world: World) -> None:
    telemetry.counts.clear()
    await refuse(world, b"1", {})
    await refuse(world, b"2", signed(b"2", OLD))
    await refuse(world, b"3", signed(b"3", "wrong"))
    await world.set_credentials("provider_a", {"unrelated": "x"})
    await refuse(world, b"4", signed(b"4", SECRET_KEYS["live"]), ALIAS)
    faults = ["NO_SIGNATURE", "OTHER_ENVIRONMENT", "WRONG_SECRET", "NO_CREDENTIALS"]
    counted = {key[1:]: value for key, value in telemetry.counts.items() if key[0] == "refused_events"}
    assert counted == {("provider_a", "LIVE", fault): 1 for fault in faults}
    kept = {event.fault.value: event for event in await world.services.refused_events.recent()}
    assert set(kept) == set(faults)
    paths = ["/provider_a/live"] * 3 + ["/provider_a"]
    for fault, body, path in zip(faults, (b"1", b"2", b"3", b"4"), paths, strict=True):
        assert (kept[fault].digest, kept[fault].path) == (hashlib.sha256(body).digest(), path)
    world.clock.move(KEPT_FOR - TICK)
    assert await world.services.refused_events.purge() == 0
    world.clock.move(TICK)
    assert await world.services.refused_events.recent() == []
    assert await world.services.refused_events.purge() == 4
    assert timedelta(days=1) == KEPT_FOR


@pytest.mark.rule("gateways.23")
async def test_what_is_kept_of_a_refused_event_holds_neither_secret_nor_person(world: World) -> None:
    body = json.dumps({"customer": {"email": "canary@example.com"}}).encode()
    signature = signed(body, "wrong")
    told = {"content-type": "application/json", "user-agent": "Provider\u00e9/1 " + "x" * 500}
    secret = {"cookie": "canary", "authorization": "Bearer canary", "x-forwarded-for": "203.0.113.7"}
    await refuse(world, body, signature | told | secret)
    (event,) = await world.services.refused_events.recent()
    assert (event.size, set(event.headers)) == (len(body), {*signature, *told})
    assert event.headers["x-provider_a-signature"] == "128 characters, hexadecimal"
    assert event.headers["user-agent"] == ("Provider?/1 " + "x" * 500)[:100]
    assert "canary" not in repr(event)
    assert signature["x-provider_a-signature"] not in repr(event)
    for given, shape in (("Zm9v+/==", "8 characters, base64"), ("sha512=\u00e9", "8 characters, other")):
        assert harmless({"x": given}, "x") == {"x": shape}


async def other_account(world: World) -> int:
    """How many open attempts the credentials of another account leave behind."""
    command = UpdateCredentials(credentials={**credentials_a(world.fakes), "sandboxSecretKey": "sk_test_another"})
    return (await world.services.gateways.set_credentials("gw_provider_a", command, by=AN_ADMIN)).open_attempts


async def test_another_accounts_no_such_reference_never_fails_a_payment(world: World) -> None:
    payment, settled = await world.handed_over(), await world.handed_over()
    assert await other_account(world) == 2
    [entry] = await entries(world.store, action="gateway.set_credentials")
    assert entry.changes["credentialsSet"]["after"] == ["sandboxSecretKey"]
    assert entry.changes["sandboxAccount"]["before"] != entry.changes["sandboxAccount"]["after"]
    assert "liveAccount" not in entry.changes
    assert "another" not in json.dumps(dict(entry.changes))
    body = json.dumps(charge_event(settled)).encode()
    await world.services.provider_events.receive(SANDBOX_ROUTE, body, signed(body, OLD))  # by the one that was replaced
    assert (await world.read(settled)).status is Status.SUCCESS
    for _ in range(CHECK_AFTER[-1] // HOUR + 1):
        world.clock.move(HOUR)
        await world.services.reconciler.run_once()
    assert (await world.read(payment)).status is Status.PENDING
    assert [one.kind for one in await world.anomalies(payment)] == [AnomalyKind.NO_EVIDENCE]
    assert await world.events(payment) == (2, 2)
    assert await other_account(world) == 0  # the same credentials again leave no more behind


async def test_an_address_that_may_not_be_called_says_nothing_of_the_providers_health(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credentials were stored by a process that may call itself."""
    monkeypatch.setattr(world.services.payment_options.providers["provider_a"], "_transport", Transport())
    for _ in range(Health.FAULTS_MAX + 1):
        assert (await refused_with(world.handed_over()))[0] is ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED
    assert await world.store.transaction.health.all() == []
