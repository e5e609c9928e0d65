"""Anomalies over HTTP: administrators list, filter, assign, note, acknowledge and close; SUPPORT only reads."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg.domain.anomaly import Anomaly, AnomalyKind
from tests.support.http_world import Api, admin_token, assert_refused, bearer

pytestmark = pytest.mark.anyio
ADMIN, SUPPORT = bearer(admin_token()), bearer(admin_token("SUPPORT"))
SECOND = timedelta(seconds=1)
LATE, UNKNOWN = an_id("anm", 1), an_id("anm", 2)


async def with_two(api: Api) -> None:
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(LATE, REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {"amounts": [5000]}, NOW))
        await tx.anomalies.add(Anomaly(UNKNOWN, None, AnomalyKind.UNKNOWN_REFERENCE, "event:provider_a", {}, NOW))


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [anomaly["id"] for anomaly in answer.json()["data"]["anomalies"]]


@pytest.mark.rule("GET /admin/anomalies")
async def test_anomalies_are_listed_newest_first_and_filtered(api: Api) -> None:
    await with_two(api)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [UNKNOWN, LATE]),
        ({"kind": "LATE_SUCCESS"}, [LATE]),
        ({"reference": REFERENCE}, [LATE]),
        ({"status": "CLOSED"}, []),
        ({"severity": "MONEY_TO_GIVE_BACK"}, [UNKNOWN, LATE]),
        ({"severity": "MONEY_TO_GIVE_BACK", "kind": "LATE_SUCCESS"}, [LATE]),
        ({"severity": "MONEY_GONE"}, []),
        ({"assignee": "ada"}, []),
        ({"status": "OPEN", "after": UNKNOWN}, [LATE]),
        ({"limit": 1}, [UNKNOWN]),
    ]
    for query, found in cases:
        answer = await api.client.get("/admin/anomalies", headers=SUPPORT, params=query)
        assert ids(answer) == found, query
        assert answer.json()["data"]["hasMore"] is (query == {"limit": 1})


@pytest.mark.rule(
    "POST /admin/anomalies/{anomalyId}/acknowledge",
    "POST /admin/anomalies/{anomalyId}/close",
    "ANOMALY_NOT_OPEN",
    "ANOMALY_ALREADY_CLOSED",
)
async def test_an_anomaly_is_acknowledged_and_closed_by_administrators_alone(api: Api) -> None:
    await with_two(api)
    one = f"/admin/anomalies/{LATE}"
    assert (await api.client.post(one + "/acknowledge", headers=SUPPORT)).status_code == 403
    acknowledged = (await api.client.post(one + "/acknowledge", headers=ADMIN)).json()["data"]
    assert (acknowledged["status"], acknowledged["acknowledgedBy"]) == ("ACKNOWLEDGED", "admin:admin-1")
    again = await api.client.post(one + "/acknowledge", headers=ADMIN)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "ANOMALY_NOT_OPEN")
    empty = await api.client.post(one + "/close", headers=ADMIN, json={"reason": ""})
    assert (empty.status_code, empty.json()["error"]["field"]) == (400, "reason")
    closed = (await api.client.post(one + "/close", headers=ADMIN, json={"reason": "Refunded by hand."})).json()["data"]
    assert (closed["status"], closed["closeReason"], closed["details"]) == (
        "CLOSED",
        "Refunded by hand.",
        {"amounts": [5000]},
    )
    again = await api.client.post(one + "/close", headers=ADMIN, json={"reason": "Once more."})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "ANOMALY_ALREADY_CLOSED")
    assert (await api.client.post(f"/admin/anomalies/{an_id('anm', 9)}/acknowledge", headers=ADMIN)).status_code == 404


@pytest.mark.rule("description.11")
async def test_severity_age_and_the_due_date_of_a_dispute_are_shown(api: Api) -> None:
    now = api.services.clock.now()
    details = {"disputeId": "358", "state": "opened", "dueAt": "2026-12-01T10:00:00.000Z"}
    dispute = Anomaly(an_id("anm", 3), REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, now - 90 * SECOND)
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(dispute)
    (shown,) = (await api.client.get("/admin/anomalies", headers=SUPPORT)).json()["data"]["anomalies"]
    assert (shown["severity"], shown["dueAt"]) == ("MONEY_GONE", details["dueAt"])
    assert 90 <= shown["ageSeconds"] < 150
    assert (shown["assignee"], shown["notes"]) == (None, [])


@pytest.mark.rule("PATCH /admin/anomalies/{anomalyId}")
async def test_who_works_on_an_anomaly_is_said_and_taken_back(api: Api) -> None:
    await with_two(api)
    one = f"/admin/anomalies/{LATE}"
    for assignee in ("ada", None, "x" * 255):
        answer = await api.client.patch(one, headers=ADMIN, json={"assignee": assignee})
        assert (answer.status_code, answer.json()["data"]["assignee"]) == (200, assignee)
    assert ids(await api.client.get("/admin/anomalies", headers=SUPPORT, params={"assignee": "x" * 255})) == [LATE]
    for body, field in (
        ({}, "assignee"),
        ({"assignee": ""}, "assignee"),
        ({"assignee": "  "}, "assignee"),
        ({"assignee": "a\nb"}, "assignee"),
        ({"assignee": "x" * 256}, "assignee"),
        ({"assignee": 7}, "assignee"),
        ({"assignee": "ada", "status": "CLOSED"}, "status"),
    ):
        assert_refused(await api.client.patch(one, headers=ADMIN, json=body), 400, "VALIDATION_ERROR", field)
    ada = {"assignee": "ada"}
    assert_refused(await api.client.patch(one, headers=SUPPORT, json=ada), 403, "FORBIDDEN")
    unknown = f"/admin/anomalies/{an_id('anm', 9)}"
    assert_refused(await api.client.patch(unknown, headers=ADMIN, json=ada), 404, "NOT_FOUND")
    await api.client.post(one + "/close", headers=ADMIN, json={"reason": "Refunded."})
    assert_refused(await api.client.patch(one, headers=ADMIN, json=ada), 409, "ANOMALY_ALREADY_CLOSED")


@pytest.mark.rule("POST /admin/anomalies/{anomalyId}/notes", "NOTE_LIMIT_REACHED")
async def test_fifty_notes_are_kept_and_no_more(api: Api) -> None:
    await with_two(api)
    notes = f"/admin/anomalies/{LATE}/notes"
    for text in ("", " \n", "x" * 2001):
        answer = await api.client.post(notes, headers=ADMIN, json={"text": text})
        assert_refused(answer, 400, "VALIDATION_ERROR", "text")
    assert_refused(await api.client.post(notes, headers=SUPPORT, json={"text": "x"}), 403, "FORBIDDEN")
    for number in range(50):
        answer = await api.client.post(notes, headers=ADMIN, json={"text": f"{number} " + "ₐ" * 1990})
        assert answer.status_code == 201, answer.text
    shown = answer.json()["data"]["notes"]
    assert [note["text"].partition(" ")[0] for note in shown] == [str(number) for number in range(50)]
    assert {note["by"] for note in shown} == {"admin:admin-1"}
    assert_refused(await api.client.post(notes, headers=ADMIN, json={"text": "x"}), 409, "NOTE_LIMIT_REACHED")
    other = f"/admin/anomalies/{UNKNOWN}"
    await api.client.post(other + "/close", headers=ADMIN, json={"reason": "Not ours."})
    closed = await api.client.post(other + "/notes", headers=ADMIN, json={"text": "x"})
    assert_refused(closed, 409, "ANOMALY_ALREADY_CLOSED")


async def test_notes_of_two_administrators_at_once_are_both_kept(api: Api) -> None:
    await with_two(api)
    notes = f"/admin/anomalies/{LATE}/notes"
    texts = [str(number) for number in range(10)]
    await asyncio.gather(*(api.client.post(notes, headers=ADMIN, json={"text": text}) for text in texts))
    found = (await api.client.get("/admin/anomalies", headers=ADMIN, params={"reference": REFERENCE})).json()["data"]
    assert sorted(note["text"] for note in found["anomalies"][0]["notes"]) == texts
