"""What administrators watch in the console, over HTTP: anomalies and the service's health."""

import pytest
from payagg_testing.builders import NOW, REFERENCE, an_id

from payagg import __version__
from payagg.adapters.postgres.migrations import HEAD
from payagg.domain.anomaly import Anomaly, AnomalyKind
from tests.support.console_browser import Browser, text_of
from tests.support.http_world import Api


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


async def test_an_answer_to_a_dispute_is_due_in_lagos_time(api: Api) -> None:
    details = {"disputeId": "358", "state": "opened", "dueAt": "2026-12-01T23:30:00+00:00"}
    async with api.services.store.begin() as tx:
        await tx.anomalies.add(Anomaly(an_id("anm"), REFERENCE, AnomalyKind.DISPUTE, "event:provider_a", details, NOW))
    text = (await (await Browser(api).sign_in_as_admin()).open("/console/admin/anomalies")).text
    assert f'<time datetime="{details["dueAt"]}">02 Dec 2026, 00:30:00</time>' in text


async def test_health_counts_refused_events_by_provider_and_reason_and_names_what_runs(api: Api) -> None:
    await api.open_gateways()
    browser = await Browser(api).sign_in_as_admin()
    assert "None within a day." in (await browser.open("/console/admin/health")).text
    for body, headers in ((b"1", {}), (b"2", {}), (b"2", {}), (b"3", {"x-provider_a-signature": "ab" * 64})):
        assert (await api.client.post("/webhooks/provider_a/live", content=body, headers=headers)).status_code == 400
    text = text_of((await browser.open("/console/admin/health")).text)
    assert "Provider A LIVE no signature 2 Provider A LIVE wrong secret 1" in text
    assert f"payagg {__version__} Python 3." in text
    assert f"Migration {HEAD}" in text
