"""What operators watch: /metrics over HTTP, shared by all processes."""

import asyncio
from dataclasses import replace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from payagg.adapters.postgres.store import PostgresStore
from payagg.application import tally
from tests.integration.http_world import SETTINGS, Api, an_api, services_over
from tests.integration.receivers import a_receiver

pytestmark = pytest.mark.anyio
Sample = tuple[str, tuple[tuple[str, str], ...]]


async def scraped(api: Api) -> dict[Sample, float]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{api.origin}/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


async def test_what_happens_is_counted_once_for_all_processes(api: Api, store: PostgresStore) -> None:
    tally.counts.clear()  # what other tests of this process left
    shop = await api.open_shop()
    async with a_receiver() as receiver:
        body = {"url": receiver.origin, "environment": "SANDBOX"}
        await api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body)
        initiated = await api.initiate(shop)
        await api.client.post(
            f"/payments/{initiated['reference']}/simulate", headers=shop.as_sandbox, json={"outcome": "SUCCESS"}
        )
        await api.services.dispatcher.run_once()
    first = await scraped(api)
    assert first["payagg_delivery_tries_total", (("result", "2xx"),)] == 1
    moved = (("environment", "SANDBOX"), ("from", "INITIATED"), ("to", "SUCCESS"))
    assert first["payagg_payment_transitions_total", moved] == 1
    requested = (("method", "POST"), ("route", "/api/v1/payments/initiate"), ("status", "201"))
    assert first["payagg_requests_total", requested] == 1
    assert first["payagg_database_up", ()] == 1
    assert first["payagg_webhook_endpoints_deactivated", ()] == 0

    # Another process: counts of its own are added, and nothing is told twice.
    tally.counts.update({("delivery_tries", "2xx"): 2})
    async with an_api(services_over(store)) as other:
        assert (await scraped(other))["payagg_delivery_tries_total", (("result", "2xx"),)] == 3


async def test_the_age_of_the_oldest_due_delivery_is_told(api: Api) -> None:
    shop = await api.open_shop()
    body = {"url": "https://shop.example/hooks", "environment": "SANDBOX"}
    await api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body)
    assert (await scraped(api))["payagg_deliveries_oldest_due_seconds", ()] == 0
    initiated = await api.initiate(shop)
    await api.client.post(
        f"/payments/{initiated['reference']}/simulate", headers=shop.as_sandbox, json={"outcome": "SUCCESS"}
    )
    await asyncio.sleep(0.05)
    assert (await scraped(api))["payagg_deliveries_oldest_due_seconds", ()] >= 0.05


async def test_a_token_guards_the_metrics_where_one_is_set(store: PostgresStore) -> None:
    services = services_over(store, replace(SETTINGS, metrics_token="a long word of the operator's"))
    async with an_api(services) as api, httpx.AsyncClient() as client:
        url = f"{api.origin}/metrics"
        assert (await client.get(url)).status_code == 401
        assert (await client.get(url, headers={"Authorization": "Bearer wrong"})).status_code == 401
        right = {"Authorization": f"Bearer {services.settings.metrics_token}"}
        assert (await client.get(url, headers=right)).status_code == 200


async def test_counts_are_kept_while_the_database_is_away() -> None:
    tally.counts.clear()
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/nothing", pool_size=1, pgbouncer=False)
    tally.count("delivery_tries", "2xx")
    async with an_api(services_over(store)) as api:
        found = await scraped(api)
        assert found["payagg_database_up", ()] == 0
        assert found["payagg_delivery_tries_total", (("result", "2xx"),)] == 1
    await store.close()
    tally.counts.clear()
