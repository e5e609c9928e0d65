"""Provider events over real HTTP: proven, kept, applied once, whatever their number and order."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.assembly import with_parts
from tests.support.http_world import served
from tests.support.provider_rigs import MODE, SECRET_KEYS, SIGNING
from tests.support.provider_world import World, assembled, world_on

ROUTES = ("provider_a/sandbox", "provider_a/live", "provider_a", "provider_b/sandbox", "provider_b/live", "provider_b")

INBOX = Statement("SELECT result, next_attempt_at, body FROM inbox ORDER BY received_at")


class InboxRow(NamedTuple):
    result: str | None
    next_attempt_at: datetime | None
    body: bytes


@dataclass
class InboundWorld(World):
    base: str = ""

    async def post(self, route: str, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
        raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]  # bytes beyond ASCII too
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.post(f"{self.base}/api/v1/webhooks/{route}", content=body, headers=raw)

    async def deliver(self, route: str, event: dict[str, Any] | bytes) -> int:
        """Posts an event signed with the route's own secret; the status of the answer."""
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        return (await self.post(route, body, signed(route, body))).status_code

    async def inbox(self) -> list[InboxRow]:
        return [InboxRow(*row) for row in await self.store.pool.run(INBOX)]


def environment_of(route: str) -> Environment:
    return Environment.SANDBOX if route.endswith("/sandbox") else Environment.LIVE


def signed(route: str, body: bytes, environment: Environment | None = None) -> dict[str, str]:
    mode = MODE[environment or environment_of(route)]
    if route.startswith("provider_a"):
        return {"x-provider_a-signature": hmac.new(SECRET_KEYS[mode].encode(), body, hashlib.sha512).hexdigest()}
    digest = hmac.new(SIGNING[mode].encode(), body, hashlib.sha512).digest()
    return {"x-provider_b-signature": base64.b64encode(digest).decode()}


def charge_event(payment: Payment, status: str = "success", **data: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": 5000000001, "domain": MODE[payment.environment], "status": status}
    facts |= {"reference": payment.reference, "currency": "NGN"}
    facts |= {"amount": payment.amount, "requested_amount": payment.amount}
    return {"event": "charge.success" if status == "success" else "charge.failed", "data": facts | data}


def payaza_event(payment: Payment, status: str = "Completed", **fields: Any) -> dict[str, Any]:
    words = {"Completed": "Funds Received", "Failed": "Transaction Failed"}
    naira = payment.amount / 100
    facts = {"transaction_reference": "P-C-20250101-AAAAAAAAAA", "merchant_reference": payment.reference}
    facts |= {"transaction_status": words.get(status, status), "status": status, "currency_code": "NGN"}
    money = {"amount_received": naira, "request_amount": naira, "amount_validation": "EXACT", "transaction_fee": 0.00}
    return facts | money | fields


def event_for(route: str, payment: Payment) -> bytes:
    return json.dumps((charge_event if route.startswith("provider_a") else payaza_event)(payment)).encode()


@pytest.fixture
async def site(database_url: str, tmp_path: Path) -> AsyncIterator[InboundWorld]:
    async with world_on(database_url, tmp_path) as world, served(world.services) as base:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER
        yield InboundWorld(**world.__dict__, base=base)


async def payment_for(site: InboundWorld, route: str) -> Payment:
    return await site.handed_over(route.partition("/")[0], environment=environment_of(route))


@pytest.mark.rule("POST /webhooks/provider_a/sandbox", "POST /webhooks/provider_a/live", "POST /webhooks/provider_a")
@pytest.mark.rule("POST /webhooks/provider_b/sandbox", "POST /webhooks/provider_b/live", "POST /webhooks/provider_b")
async def test_a_signed_event_settles_its_payment_once_on_every_route(site: InboundWorld) -> None:
    for route in ROUTES:
        payment = await payment_for(site, route)
        body = event_for(route, payment)
        assert [await site.deliver(route, body) for _ in range(3)] == [200, 200, 200]
        assert (await site.read(payment)).status is Status.SUCCESS
        assert await site.history(payment) == ["PENDING", "SUCCESS"]
    assert [(row.result, row.next_attempt_at) for row in await site.inbox()] == [("MOVED", None)] * len(ROUTES)


@pytest.mark.rule("provider-events.1", "INVALID_WEBHOOK_SIGNATURE")
async def test_every_forged_signature_is_refused_alike_and_leaves_nothing(site: InboundWorld) -> None:
    contents = set()
    for route in ROUTES:
        payment = await payment_for(site, route)
        body = event_for(route, payment)
        name, good = next(iter(signed(route, body).items()))
        other = Environment.LIVE if environment_of(route) is Environment.SANDBOX else Environment.SANDBOX
        foreign = "provider_b/live" if route.startswith("provider_a") else "provider_a/live"
        reserialised = json.dumps(json.loads(body), separators=(",", ":")).encode()
        wrong = ("", good[:-1], good[:40], "0" * 128, "z" * 128, "\u00e9" * 64, hashlib.sha512(body).hexdigest())
        forged: list[dict[str, str]] = [
            *({}, {"x-paystack-signature": good}, {"authorization": f"Bearer {good}"}),
            *(signed(route, reserialised), signed(route, body, other)),
            *({name: value} for value in (*wrong, *signed(foreign, body).values())),
        ]
        answers = [await site.post(route, body, headers) for headers in forged]
        # A body that is not even JSON is told apart from a bad signature only by whoever can sign.
        answers.append(await site.post(route, b"\xff{", {name: good}))
        assert {(a.status_code, a.json()["error"]["code"]) for a in answers} == {(400, "INVALID_WEBHOOK_SIGNATURE")}
        contents |= {answer.content for answer in answers}
        assert (await site.read(payment)).status is Status.PENDING
    assert len(contents) == 1
    assert await site.inbox() == []


@pytest.mark.rule("provider-events.3")
async def test_100_equal_events_at_once_are_one_transition_and_one_event(site: InboundWorld) -> None:
    payment = await payment_for(site, "provider_a/sandbox")
    body = event_for("provider_a/sandbox", payment)
    assert set(await asyncio.gather(*(site.deliver("provider_a/sandbox", body) for _ in range(100)))) == {200}
    assert await site.history(payment) == ["PENDING", "SUCCESS"]
    assert await site.events(payment) == (2, 2)
    assert len(await site.inbox()) == 1
    # Those that differ in their bytes alone move it no more.
    bodies = [charge_event(payment, order_id=number) for number in range(20)]
    assert set(await asyncio.gather(*(site.deliver("provider_a/sandbox", body) for body in bodies))) == {200}
    assert await site.history(payment) == ["PENDING", "SUCCESS"]
    assert await site.anomalies(payment) == []


@pytest.mark.rule("provider-events.2")
async def test_an_event_never_crosses_environments_or_providers(site: InboundWorld) -> None:
    live = await payment_for(site, "provider_a/live")
    other = await payment_for(site, "provider_b/sandbox")
    untouched = await site.payment()
    assert await site.deliver("provider_a/sandbox", charge_event(live)) == 200
    assert await site.deliver("provider_a/sandbox", charge_event(replace(live, environment=Environment.SANDBOX))) == 200
    assert await site.deliver("provider_a/sandbox", charge_event(other)) == 200
    assert await site.deliver("provider_b/sandbox", payaza_event(untouched)) == 200
    statuses = [(await site.read(payment)).status for payment in (live, other, untouched)]
    assert statuses == [Status.PENDING, Status.PENDING, Status.INITIATED]
    assert {a.kind for a in await site.anomalies(live)} == {AnomalyKind.WRONG_ENVIRONMENT}
    assert {a.kind for p in (other, untouched) for a in await site.anomalies(p)} == {AnomalyKind.WRONG_PROVIDER}
    # Money for a reference that nobody knows is kept.
    assert await site.deliver("provider_b/live", payaza_event(replace(live, reference="PAY-20250131-ZZZZZZ"))) == 200
    assert AnomalyKind.UNKNOWN_REFERENCE in {a.kind for a in await site.anomalies()}


@pytest.mark.rule("provider-events.4")
async def test_a_signed_malformed_body_is_kept_and_only_provider_a_refuses_it(site: InboundWorld) -> None:
    for route in ROUTES:
        for body in (b"", b"null", b"{", b'{"event":', b"\xff\xfe"):
            expected = 400 if route.startswith("provider_a") else 200
            assert [await site.deliver(route, body) for _ in range(2)] == [expected, expected], (route, body)
    # Each once for every provider and environment: an alias is its live route.
    kept = await site.inbox()
    assert len(kept) == 5 * 4
    assert {(row.result, bytes(row.body)) for row in kept} == {("MALFORMED", b"null")}


@pytest.mark.rule("PROVIDER_NOT_CONFIGURED")
async def test_without_credentials_only_provider_as_alias_says_so(site: InboundWorld) -> None:
    for route in ROUTES:
        await site.set_credentials(route.partition("/")[0], {"unrelated": "x"})
        answer = await site.post(route, b"{}", signed(route, b"{}"))
        expected = (503, "PROVIDER_NOT_CONFIGURED") if route == "provider_a" else (400, "INVALID_WEBHOOK_SIGNATURE")
        assert (answer.status_code, answer.json()["error"]["code"]) == expected


@pytest.mark.rule("provider-events.8")
async def test_a_disabled_gateway_still_hears_about_its_own_payments(site: InboundWorld) -> None:
    payment = await payment_for(site, "provider_a/sandbox")
    async with site.store.begin() as tx:
        gateway = await tx.gateways.by_slug("provider_a")
        assert gateway is not None
        await tx.gateways.save(gateway.disable(site.clock.now()))
    site.clock.move(timedelta(hours=1))
    assert await site.deliver("provider_a/sandbox", charge_event(payment)) == 200
    assert (await site.read(payment)).status is Status.SUCCESS


@pytest.mark.rule("provider-events.5")
@pytest.mark.error_lines("inbound event not handled")
async def test_an_event_whose_handling_fails_is_acknowledged_and_handled_later(site: InboundWorld) -> None:
    payments = {route: await payment_for(site, route) for route in ROUTES}
    await site.store.pool.run(Statement("ALTER TABLE transitions RENAME TO broken"))
    for route, payment in payments.items():
        assert await site.deliver(route, event_for(route, payment)) == 200
    await site.store.pool.run(Statement("ALTER TABLE broken RENAME TO transitions"))
    await site.services.provider_events.retry_due()
    assert {(await site.read(payment)).status for payment in payments.values()} == {Status.PENDING}  # not due yet
    site.clock.move(timedelta(minutes=1))
    await asyncio.gather(site.services.provider_events.retry_due(), site.other_process().provider_events.retry_due())
    assert [await site.history(payment) for payment in payments.values()] == [["PENDING", "SUCCESS"]] * len(ROUTES)
    assert {row.result for row in await site.inbox()} == {"MOVED"}


@pytest.mark.error_lines("inbound event not handled")
async def test_an_event_is_handled_in_the_transaction_of_its_change(site: InboundWorld) -> None:
    payment = await payment_for(site, "provider_a/sandbox")
    await site.store.pool.run(Statement("ALTER TABLE inbox ADD CONSTRAINT never CHECK (handled_at IS NULL)"))
    assert await site.deliver("provider_a/sandbox", event_for("provider_a/sandbox", payment)) == 200
    await site.store.pool.run(Statement("ALTER TABLE inbox DROP CONSTRAINT never"))
    assert (await site.read(payment)).status is Status.PENDING
    site.clock.move(timedelta(minutes=1))
    await site.services.provider_events.retry_due()
    assert await site.history(payment) == ["PENDING", "SUCCESS"]


@pytest.mark.error_lines("request failed")
async def test_an_event_that_could_not_be_kept_is_not_acknowledged(site: InboundWorld) -> None:
    payments = {route: await payment_for(site, route) for route in ROUTES}
    await site.store.pool.run(Statement("ALTER TABLE inbox RENAME TO broken"))
    for route, payment in payments.items():
        assert await site.deliver(route, event_for(route, payment)) >= 500


@pytest.mark.rule("limits.25")
async def test_the_body_is_capped_at_one_megabyte_and_never_decompressed(site: InboundWorld) -> None:
    route, fits, over = "provider_b/live", b"1" * 1024 * 1024, b"1" * (1024 * 1024 + 1)
    assert await site.deliver(route, fits) == 200
    assert (await site.post(route, over, signed(route, over))).status_code == 413
    assert (await site.post(route, b"x", {"content-encoding": "gzip"})).status_code == 400


@pytest.mark.rule("limits.9", "RATE_LIMITED")
async def test_the_101st_request_of_a_minute_is_refused_on_every_server_and_route(
    database_url: str, tmp_path: Path
) -> None:
    async with world_on(database_url, tmp_path, limit=100) as world:
        other = assembled(world.store, world.clock, limit=100)
        async with served(world.services) as one, served(other) as two:
            sites = [InboundWorld(**world.__dict__, base=base) for base in (one, two)]
            spoofed = [{}, {"x-forwarded-for": "9.9.9.9"}, {"forwarded": "for=8.8.8.8"}, {"x-real-ip": "7.7.7.7"}]
            counted = [await sites[n % 2].post(ROUTES[n % 6], b"{}", spoofed[n % 4]) for n in range(100)]
            assert 429 not in {answer.status_code for answer in counted}
            for site in sites:
                refused = await site.post("provider_a/live", b"{}")
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
                assert 1 <= int(refused.headers["retry-after"]) <= 60
            world.clock.move(timedelta(minutes=1))
            assert (await sites[0].post("provider_a/live", b"{}")).status_code == 400


@pytest.mark.rule("limits.10")
async def test_signed_and_refused_events_count_and_known_networks_do_not(database_url: str, tmp_path: Path) -> None:
    async with world_on(database_url, tmp_path, limit=3) as world:
        settings = replace(world.services.settings, provider_networks=(ip_network("127.0.0.0/8"),))
        async with served(world.services) as one, served(with_parts(world.services, settings=settings)) as two:
            site, open_site = [InboundWorld(**world.__dict__, base=base) for base in (one, two)]
            route, payment = "provider_a/sandbox", await payment_for(site, "provider_a/sandbox")
            assert await site.deliver(route, event_for(route, payment)) == 200
            assert await site.deliver(route, b"null") == 400  # signed, and no event
            assert (await site.post("provider_b/live", b"{}")).status_code == 400  # not signed
            kept = await site.inbox()
            assert await site.deliver(route, event_for(route, await payment_for(site, route))) == 429
            assert await site.deliver(route, b"null") == 429
            assert await site.inbox() == kept
            answers = [(await open_site.post("provider_a/live", b"{}")).status_code for _ in range(4)]
            assert answers == [400, 400, 400, 400]


@pytest.mark.rule("limits.10")
async def test_a_flood_past_the_inbound_limit_does_not_reach_the_database(site: InboundWorld) -> None:
    limited = with_parts(site.services, settings=replace(site.services.settings, webhook_rate_limit=1))
    async with served(limited) as base:
        flooded = replace(site, base=base)
        assert [await flooded.deliver("provider_a/sandbox", b"null") for _ in range(2)] == [400, 429]
        await site.store.pool.run(Statement("ALTER TABLE rate_hits RENAME TO broken"))
        assert await flooded.deliver("provider_a/sandbox", b"null") == 429
        site.clock.move(timedelta(seconds=59))
        assert await flooded.deliver("provider_a/sandbox", b"null") == 429
        await site.store.pool.run(Statement("ALTER TABLE broken RENAME TO rate_hits"))
        site.clock.move(timedelta(seconds=1))
        assert await flooded.deliver("provider_a/sandbox", b"null") == 400
