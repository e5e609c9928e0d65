"""Ending a payment by hand over HTTP, on Postgres: two administrators, one transition."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from payagg_testing.builders import NOW, REFERENCE, a_business, a_payment, an_attempt, an_endpoint, an_id
from payagg_testing.clocks import ManualClock

from payagg.application.reports.explain import timeline
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.business import Role
from payagg.domain.payment import Payment, Status, Trigger
from tests.support.assembly import services_over
from tests.support.audit_trail import entries
from tests.support.http_world import Api, a_token, admin_token, an_api, assert_refused, bearer, merchant_token

ADA, BEN, EVE = (bearer(a_token(name, type="admin", role="ADMIN")) for name in ("ada", "ben", "eve"))
ROOT, SUPPORT = bearer(a_token("root", type="admin", role="SUPER_ADMIN")), bearer(admin_token("SUPPORT"))
BODY = {"outcome": "FAILED", "reason": "The account is closed.", "evidence": "Case 4711: nothing was paid."}
RESOLVE = f"/admin/payments/{REFERENCE}/resolve"
CONFIRM = RESOLVE + "/confirm"
STUCK = NOW + timedelta(hours=80)


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock(STUCK)


@pytest.fixture
async def stuck(store: Any, clock: ManualClock) -> Any:
    """An API whose clock stands days after a PENDING payment's window, of which no provider says anything."""
    services = services_over(store, clock=clock)
    payment, _ = await store.add_payment(a_payment())
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.endpoints.add(an_endpoint())
        await tx.attempts.add(an_attempt(payment))
        await services.settlement.move(tx, payment, Trigger.PROCESS, actor="payer")
        reason = {"reason": "NO_EVIDENCE"}
        await tx.anomalies.add(Anomaly(an_id("anm"), REFERENCE, AnomalyKind.NO_EVIDENCE, "reconciler", reason, NOW))
    async with an_api(services) as api:
        yield api


async def stored(api: Api) -> Payment:
    found = await api.services.store.find_payment(REFERENCE)
    assert found is not None
    return found


async def post(api: Api, path: str, who: dict[str, str], body: Any = None) -> httpx.Response:
    return await api.client.post(path, headers=who, json=body)


@pytest.mark.rule("description.12", "POST /admin/payments/{reference}/resolve")
@pytest.mark.rule("POST /admin/payments/{reference}/resolve/confirm")
async def test_two_administrators_end_a_payment_that_no_provider_ends(stuck: Api, clock: ManualClock) -> None:
    asked = await post(stuck, RESOLVE, ADA, {**BODY, "evidence": "Case 4711:\nnothing was paid."})
    assert asked.status_code == 201, asked.text
    told = asked.json()["data"]
    assert (told["reference"], told["outcome"], told["requestedBy"]) == (REFERENCE, "FAILED", "admin:ada")
    assert (told["confirmUntil"], told["confirmedBy"]) == ("2025-02-04T20:00:00Z", None)
    assert (await stored(stuck)).status is Status.PENDING
    clock.move(timedelta(minutes=1))
    confirmed = await post(stuck, CONFIRM, ROOT)
    assert (confirmed.status_code, confirmed.json()["data"]["confirmedBy"]) == (200, "admin:root")

    payment = await stored(stuck)
    assert (payment.status, payment.failure_reason) == (Status.FAILED, "RESOLVED")
    story = await stuck.get(f"/admin/payments/{REFERENCE}/story", SUPPORT)
    last = {"trigger": "FAIL", "reason": "RESOLVED", "actor": "admin:ada, confirmed by admin:root"}
    assert story["transitions"][-1].items() >= last.items()
    assert [one["type"] for one in story["events"]] == ["payment.pending", "payment.failed"]
    assert (len(story["deliveries"]), story["resolvable"]) == (2, False)
    assert story["resolutions"] == [confirmed.json()["data"]]

    resolved, requested = await entries(stuck.services.store, object_id=REFERENCE)
    assert (requested.action, requested.subject, requested.business_id) == ("payment.ask_resolution", "ada", None)
    assert requested.changes["evidence"]["after"] == "Case 4711:\nnothing was paid."
    assert (resolved.action, resolved.subject, resolved.business_id) == ("payment.resolve", "root", "biz_1")
    assert resolved.changes == {
        "status": {"before": "PENDING", "after": "FAILED"},
        "failureReason": {"before": None, "after": "RESOLVED"},
    }
    told_by_line = "\n".join(await timeline(stuck.services.store, REFERENCE))
    assert 'Evidence: "Case 4711:\\nnothing was paid."' in told_by_line
    # A merchant sees the end and not what administrators wrote.
    async with stuck.services.store.begin() as tx:
        await tx.members.add("biz_1", "bola", Role.OWNER)
    path = f"/merchant/businesses/biz_1/payments/{REFERENCE}/story"
    shown = await stuck.get(path, bearer(merchant_token("bola")), environment="SANDBOX")
    assert (shown["payment"]["failureReason"], "4711" in str(shown)) == ("RESOLVED", False)


@pytest.mark.rule("RESOLUTION_ALREADY_REQUESTED", "RESOLUTION_NOT_REQUESTED", "SECOND_ADMINISTRATOR_REQUIRED")
@pytest.mark.rule("RESOLUTION_NOT_ALLOWED")
async def test_refusals_to_end_a_payment_by_hand(stuck: Api, clock: ManualClock) -> None:
    assert_refused(await post(stuck, CONFIRM, BEN), 409, "RESOLUTION_NOT_REQUESTED")
    clock.move(NOW + timedelta(minutes=59) - STUCK)
    assert_refused(await post(stuck, RESOLVE, ADA, BODY), 409, "RESOLUTION_NOT_ALLOWED")  # the payer may still pay
    clock.move(STUCK - clock.now())
    assert (await post(stuck, RESOLVE, ADA, BODY)).status_code == 201
    assert_refused(await post(stuck, CONFIRM, ADA), 409, "SECOND_ADMINISTRATOR_REQUIRED")
    assert_refused(await post(stuck, RESOLVE, BEN, BODY), 409, "RESOLUTION_ALREADY_REQUESTED")
    assert (await stored(stuck)).status is Status.PENDING


@pytest.mark.rule("description.12", "POST /admin/payments/{reference}/resolve/confirm")
async def test_of_administrators_who_race_one_asks_and_one_confirms(stuck: Api) -> None:
    asked = await asyncio.gather(*(post(stuck, RESOLVE, who, BODY) for who in (ADA, BEN, EVE) * 4))
    assert sorted(answer.status_code for answer in asked) == [201] + [409] * 11
    (first,) = (answer.json()["data"]["requestedBy"] for answer in asked if answer.status_code == 201)
    others = [who for name, who in (("ada", ADA), ("ben", BEN), ("eve", EVE)) if first != f"admin:{name}"]
    confirmed = await asyncio.gather(*(post(stuck, CONFIRM, who) for who in others * 4))
    assert sorted(answer.status_code for answer in confirmed) == [200] + [409] * 7
    async with stuck.services.store.begin() as tx:
        moves = [one.to_status for one in await tx.payments.transitions(REFERENCE)]
        events, _ = await tx.webhook_events.of_payment(REFERENCE)
    assert (moves, len(events)) == ([Status.PENDING, Status.FAILED], 2)
    trail = [one.action for one in await entries(stuck.services.store, object_id=REFERENCE)]
    assert sorted(trail) == ["payment.ask_resolution", "payment.resolve"]
