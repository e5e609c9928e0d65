"""Anomalies over HTTP: worked off by administrators, SUPPORT only reads; and a payment that two of them end by hand."""

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

ADMIN, SUPPORT = bearer(admin_token()), bearer(admin_token("SUPPORT"))
SECOND = timedelta(seconds=1)
LATE, UNKNOWN = an_id("anm", 1), an_id("anm", 2)


@pytest.fixture
async def api(own_api: Api) -> Api:
    async with own_api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(LATE, REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {"amounts": [5000]}, NOW))
        await tx.anomalies.add(Anomaly(UNKNOWN, None, AnomalyKind.UNKNOWN_REFERENCE, "event:provider_a", {}, NOW))
    return own_api


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [anomaly["id"] for anomaly in answer.json()["data"]["anomalies"]]


@pytest.mark.rule("description.11", "GET /admin/anomalies")
async def test_anomalies_are_listed_newest_first_and_filtered(api: Api) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [UNKNOWN, LATE]),
        ({"kind": "LATE_SUCCESS", "reference": REFERENCE, "severity": "MONEY_TO_GIVE_BACK"}, [LATE]),
        ({"status": "CLOSED"}, []),
        ({"assignee": "ada"}, []),
    ]
    for query, found in cases:
        assert ids(await api.client.get("/admin/anomalies", headers=SUPPORT, params=query)) == found, query
    page = await api.get("/admin/anomalies", SUPPORT, limit=1)
    assert ([one["id"] for one in page["anomalies"]], page["hasMore"]) == ([UNKNOWN], True)
    [rest] = (await api.get("/admin/anomalies", SUPPORT, after=page["nextCursor"]))["anomalies"]
    assert rest["id"] == LATE
    end = await api.get("/admin/anomalies", SUPPORT, after=LATE)
    assert end == {"anomalies": [], "nextCursor": None, "hasMore": False}
    now = api.services.clock.now()
    details = {"disputeId": "358", "state": "opened", "dueAt": "2026-12-01T10:00:00.000Z"}
    dispute = Anomaly(an_id("anm", 3), REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, now - 90 * SECOND)
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(dispute)
    shown, *_ = (await api.get("/admin/anomalies", SUPPORT))["anomalies"]
    own: dict[str, Any] = {"severity": "MONEY_GONE", "dueAt": details["dueAt"], "assignee": None, "notes": []}
    assert {**shown, **own} == shown
    assert 90 <= shown["ageSeconds"] < 150


@pytest.mark.rule("description.7")
@pytest.mark.rule("ANOMALY_NOT_OPEN", "ANOMALY_ALREADY_CLOSED", "NOTE_LIMIT_REACHED")
@pytest.mark.rule("PATCH /admin/anomalies/{anomalyId}", "POST /admin/anomalies/{anomalyId}/acknowledge")
@pytest.mark.rule("POST /admin/anomalies/{anomalyId}/close", "POST /admin/anomalies/{anomalyId}/notes")
async def test_an_anomaly_is_worked_off_by_administrators(api: Api) -> None:
    one = f"/admin/anomalies/{LATE}"

    async def patched(assignee: Any, path: str = one, **more: Any) -> httpx.Response:
        return await api.client.patch(path, headers=ADMIN, json={"assignee": assignee, **more})

    async def posted(part: str, body: Any = None, path: str = one) -> httpx.Response:
        return await api.client.post(f"{path}/{part}", headers=ADMIN, **({} if body is None else {"json": body}))

    for assignee in ("ada", None, "x" * 255):
        answer = await patched(assignee)
        assert (answer.status_code, answer.json()["data"]["assignee"]) == (200, assignee)
    assert ids(await api.client.get("/admin/anomalies", headers=SUPPORT, params={"assignee": "x" * 255})) == [LATE]
    for wrong in ("", "  ", "a\nb", "x" * 256, 7):
        assert_refused(await patched(wrong), 400, "VALIDATION_ERROR", "assignee")
    assert_refused(await patched("ada", status="CLOSED"), 400, "VALIDATION_ERROR", "status")
    assert_refused(await api.client.patch(one, headers=ADMIN, json={}), 400, "VALIDATION_ERROR", "assignee")
    acknowledged = (await posted("acknowledge")).json()["data"]
    assert (acknowledged["status"], acknowledged["acknowledgedBy"]) == ("ACKNOWLEDGED", "admin:admin-1")
    assert_refused(await posted("acknowledge"), 409, "ANOMALY_NOT_OPEN")

    # Of notes at one moment none is lost, and fifty are kept.
    answers = await asyncio.gather(*(posted("notes", {"text": f"{n} " + "ₐ" * 1990}) for n in range(51)))
    assert sorted(answer.status_code for answer in answers) == [201] * 50 + [409]
    assert_refused(await posted("notes", {"text": "x"}), 409, "NOTE_LIMIT_REACHED")
    closed = (await posted("close", {"reason": "Refunded by hand."})).json()["data"]
    assert (closed["status"], closed["closeReason"]) == ("CLOSED", "Refunded by hand.")
    assert closed["details"] == {"amounts": [5000]}
    assert len({note["text"] for note in closed["notes"]}) == 50
    assert {note["by"] for note in closed["notes"]} == {"admin:admin-1"}

    other, unknown = f"/admin/anomalies/{UNKNOWN}", f"/admin/anomalies/{an_id('anm', 9)}"
    await posted("close", {"reason": "Not ours."}, other)
    for path, status, code in ((other, 409, "ANOMALY_ALREADY_CLOSED"), (unknown, 404, "NOT_FOUND")):
        assert_refused(await posted("close", {"reason": "Once more."}, path), status, code)
        assert_refused(await posted("notes", {"text": "x"}, path), status, code)
        assert_refused(await patched("ada", path), status, code)
    assert_refused(await posted("acknowledge", path=unknown), 404, "NOT_FOUND")


ADA, BEN = (bearer(a_token(name, type="admin", role="ADMIN")) for name in ("ada", "ben"))
ROOT = bearer(a_token("root", type="admin", role="SUPER_ADMIN"))
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
    assert confirmed.status_code == 200
    assert confirmed.json()["data"] == {**told, "confirmedBy": "admin:root", "confirmedAt": "2025-02-03T20:01:00Z"}

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
    # Work that was closed first leaves the payment to be ended.
    closed = await post(stuck, f"/admin/anomalies/{an_id('anm')}/close", ADA, {"reason": "Refunded at the provider."})
    assert closed.status_code == 200
    assert (await post(stuck, RESOLVE, ADA, BODY)).status_code == 201
    assert_refused(await post(stuck, CONFIRM, ADA), 409, "SECOND_ADMINISTRATOR_REQUIRED")
    assert_refused(await post(stuck, RESOLVE, BEN, BODY), 409, "RESOLUTION_ALREADY_REQUESTED")
    assert (await stored(stuck)).status is Status.PENDING
