"""Anomalies over HTTP: administrators list, filter, assign, note, acknowledge and close; SUPPORT only reads."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg.domain.anomaly import Anomaly, AnomalyKind
from tests.support.http_world import Api, admin_token, assert_refused, bearer

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
    now = api.services.clock.now()
    details = {"disputeId": "358", "state": "opened", "dueAt": "2026-12-01T10:00:00.000Z"}
    dispute = Anomaly(an_id("anm", 3), REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, now - 90 * SECOND)
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(dispute)
    shown, *_ = (await api.get("/admin/anomalies", SUPPORT))["anomalies"]
    own: dict[str, Any] = {"severity": "MONEY_GONE", "dueAt": details["dueAt"], "assignee": None, "notes": []}
    assert {**shown, **own} == shown
    assert 90 <= shown["ageSeconds"] < 150


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

    for text in ("", " \n", "x" * 2001):
        assert_refused(await posted("notes", {"text": text}), 400, "VALIDATION_ERROR", "text")
    # Of notes at one moment none is lost, and fifty are kept.
    answers = await asyncio.gather(*(posted("notes", {"text": f"{n} " + "ₐ" * 1990}) for n in range(51)))
    assert sorted(answer.status_code for answer in answers) == [201] * 50 + [409]
    assert_refused(await posted("notes", {"text": "x"}), 409, "NOTE_LIMIT_REACHED")
    assert_refused(await posted("close", {"reason": ""}), 400, "VALIDATION_ERROR", "reason")
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
