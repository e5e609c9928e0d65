"""What administrators watch in the console, over HTTP: anomalies and the service's health."""

import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg.domain.anomaly import Anomaly, AnomalyKind
from tests.support.console_browser import Browser
from tests.support.http_world import Api

pytestmark = pytest.mark.anyio


async def test_an_answer_to_a_dispute_is_due_in_lagos_time(api: Api) -> None:
    details = {"disputeId": "358", "state": "opened", "dueAt": "2026-12-01T23:30:00+00:00"}
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(an_id("anm"), REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, NOW))
    text = (await (await Browser(api).sign_in_as_admin()).open("/console/admin/anomalies")).text
    assert f'<time datetime="{details["dueAt"]}">02 Dec 2026, 00:30:00</time>' in text
