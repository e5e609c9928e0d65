"""Anomalies over HTTP: an administrator lists, filters, acknowledges and closes; SUPPORT only reads."""

from typing import Any

import httpx
import pytest

from payagg.domain.anomaly import Anomaly, AnomalyKind
from tests.support.builders import NOW, REFERENCE, an_id
from tests.support.http_world import Api, admin_token, bearer

pytestmark = pytest.mark.anyio
ADMIN, SUPPORT = bearer(admin_token()), bearer(admin_token("SUPPORT"))
LATE, UNKNOWN = an_id("anm", 1), an_id("anm", 2)


async def with_two(api: Api) -> None:
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(LATE, REFERENCE, AnomalyKind.LATE_SUCCESS, "verify", {"amounts": [5000]}, NOW))
        await tx.anomalies.add(Anomaly(UNKNOWN, None, AnomalyKind.UNKNOWN_REFERENCE, "event:provider_a", {}, NOW))


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [anomaly["id"] for anomaly in answer.json()["data"]["anomalies"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, [UNKNOWN, LATE]),
        ({"kind": "LATE_SUCCESS"}, [LATE]),
        ({"reference": REFERENCE}, [LATE]),
        ({"status": "CLOSED"}, []),
        ({"status": "OPEN", "after": UNKNOWN}, [LATE]),
        ({"limit": 1}, [UNKNOWN]),
    ],
)
async def test_anomalies_are_listed_newest_first_and_filtered(
    api: Api, query: dict[str, Any], found: list[str]
) -> None:
    await with_two(api)
    answer = await api.client.get("/admin/anomalies", headers=SUPPORT, params=query)
    assert ids(answer) == found
    assert answer.json()["data"]["hasMore"] is (query == {"limit": 1})


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ({"status": "GONE"}, "VALIDATION_ERROR", "status"),
        ({"kind": "late_success"}, "VALIDATION_ERROR", "kind"),
        ({"after": "anm_1"}, "VALIDATION_ERROR", "after"),
        ({"limit": 101}, "VALIDATION_ERROR", "limit"),
        ({"reference": "nonsense"}, "INVALID_REFERENCE", "reference"),
    ],
)
async def test_a_bad_filter_is_named(api: Api, query: dict[str, Any], code: str, field: str) -> None:
    answer = await api.client.get("/admin/anomalies", headers=ADMIN, params=query)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == (code, field)


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
