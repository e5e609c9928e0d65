"""The service's health over HTTP: what waits, and for whom it is shown."""

from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, an_id

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.health import Health
from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, assert_refused, bearer

pytestmark = pytest.mark.anyio
PATH = "/admin/health"


@pytest.mark.rule("GET /admin/health")
async def test_what_waits_is_shown_to_administrators(api: Api) -> None:
    as_support = bearer(admin_token("SUPPORT"))
    quiet = (await api.client.get(PATH, headers=as_support)).json()["data"]
    assert quiet == {
        "deliveriesOldestDueSeconds": 0.0,
        "paymentsOldestUnaskedSeconds": 0.0,
        "webhookEndpointsDeactivated": 0,
        "pausedProviders": [],
        "unclosedAnomalies": [],
    }
    now = api.services.clock.now()
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(an_id("anm", 1), None, AnomalyKind.UNKNOWN_REFERENCE, "event:a", {}, NOW))
        await tx.health.lock("provider_a", Environment.LIVE)
        pause = timedelta(minutes=5)
        await tx.health.save(Health("provider_a", Environment.LIVE, 5, now + pause, pause))
        await tx.health.lock("provider_b", Environment.LIVE)
        await tx.health.save(Health("provider_b", Environment.LIVE, 5, now - pause, pause))
    shop = await api.open_shop()
    await api.add_endpoint(shop)
    await api.paid(shop)
    loud = (await api.client.get(PATH, headers=as_support)).json()["data"]
    assert loud["unclosedAnomalies"] == [{"kind": "UNKNOWN_REFERENCE", "count": 1}]
    (paused,) = loud["pausedProviders"]
    assert (paused["gateway"], paused["environment"], 0 < paused["seconds"] <= 300) == ("provider_a", "LIVE", True)
    assert loud["deliveriesOldestDueSeconds"] > 0
    assert_refused(await api.client.get(PATH, headers=shop.as_owner), 403, "FORBIDDEN")
