"""What operators watch: /metrics over HTTP, shared by all processes."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import payagg
from payagg.adapters.postgres.store import PostgresStore
from payagg.application import counters
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment
from payagg.entrypoints.http.metrics import COUNTERS
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, an_api
from tests.support.provider_world import world_on
from tests.support.receivers import a_receiver

pytestmark = pytest.mark.anyio
Sample = tuple[str, tuple[tuple[str, str], ...]]


async def scraped(api: Api) -> dict[Sample, float]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{api.origin}/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


async def succeed(api: Api, url: str) -> None:
    """A payment of a new shop succeeds, so that its endpoint at `url` has an event due."""
    shop = await api.open_shop()
    body = {"url": url, "environment": "SANDBOX"}
    await api.client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=body)
    initiated = await api.initiate(shop)
    await api.client.post(
        f"/payments/{initiated['reference']}/simulate", headers=shop.as_sandbox, json={"outcome": "SUCCESS"}
    )


async def test_what_happens_is_counted_once_for_all_processes(api: Api, store: PostgresStore) -> None:
    counters.counts.clear()  # what other tests of this process left
    async with a_receiver() as receiver:
        await succeed(api, receiver.origin)
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
    counters.counts.update({("delivery_tries", "2xx"): 2})
    async with an_api(services_over(store)) as other:
        assert (await scraped(other))["payagg_delivery_tries_total", (("result", "2xx"),)] == 3


async def test_the_age_of_the_oldest_due_delivery_is_told(api: Api) -> None:
    assert (await scraped(api))["payagg_deliveries_oldest_due_seconds", ()] == 0
    await succeed(api, "https://shop.example/hooks")
    await asyncio.sleep(0.05)
    assert (await scraped(api))["payagg_deliveries_oldest_due_seconds", ()] >= 0.05


async def test_a_try_taken_over_from_a_lost_worker_is_counted(api: Api) -> None:
    counters.counts.clear()
    async with a_receiver() as receiver:
        await succeed(api, receiver.origin)
        lost = await api.services.store.queue.claim(api.services.clock.now(), 10, 5, 10, timedelta(0))
        assert len(lost) == 1
        await api.services.dispatcher.run_once()
    assert (await scraped(api))["payagg_delivery_leases_lapsed_total", ()] == 1


async def test_an_endpoint_that_is_switched_off_is_told(api: Api) -> None:
    async with a_receiver(answer=lambda _: (410, "")) as receiver:
        await succeed(api, receiver.origin)
        await api.services.dispatcher.run_once()
    assert (await scraped(api))["payagg_webhook_endpoints_deactivated", ()] == 1


async def test_calls_to_providers_are_counted_and_an_overdue_question_is_told(
    database_url: str, tmp_path: Path
) -> None:
    counters.counts.clear()
    hour = timedelta(hours=1)
    async with world_on(database_url, tmp_path) as world, an_api(world.services) as api:
        await world.handed_over("provider_a")
        first = await scraped(api)
        called = (("gateway", "provider_a"), ("operation", "start_charge"), ("result", "REDIRECT"))
        assert first["payagg_provider_calls_total", called] == 1
        assert first["payagg_payments_oldest_unasked_seconds", ()] == 0
        world.clock.move(hour)
        # The question came due within the first minutes of it.
        overdue = (await scraped(api))["payagg_payments_oldest_unasked_seconds", ()]
        assert hour.total_seconds() / 2 < overdue < hour.total_seconds()


async def test_without_a_token_dev_alone_shows_metrics(store: PostgresStore) -> None:
    for is_dev, status in ((False, 401), (True, 200)):
        services = services_over(store, replace(SETTINGS, metrics_token=None, dev=is_dev))
        async with an_api(services) as api, httpx.AsyncClient() as client:
            assert (await client.get(f"{api.origin}/metrics")).status_code == status


async def test_a_token_guards_the_metrics_where_one_is_set(store: PostgresStore) -> None:
    services = services_over(store, replace(SETTINGS, metrics_token="a long word of the operator's"))
    async with an_api(services) as api, httpx.AsyncClient() as client:
        url = f"{api.origin}/metrics"
        assert (await client.get(url)).status_code == 401
        assert (await client.get(url, headers={"Authorization": "Bearer wrong"})).status_code == 401
        right = {"Authorization": f"Bearer {services.settings.metrics_token}"}
        assert (await client.get(url, headers=right)).status_code == 200


async def test_counts_are_kept_while_the_database_is_away() -> None:
    counters.counts.clear()
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/nothing", pool_size=1, pgbouncer=False)
    counters.count("delivery_tries", "2xx")
    async with an_api(services_over(store)) as api:
        found = await scraped(api)
        assert found["payagg_database_up", ()] == 0
        assert found["payagg_delivery_tries_total", (("result", "2xx"),)] == 1
    await store.close()
    counters.counts.clear()


async def test_an_idempotency_key_with_another_body_and_a_kept_fact_are_counted(api: Api) -> None:
    counters.counts.clear()
    shop = await api.open_shop()
    for amount in (150_000, 150_001):
        await api.initiate(shop, amount=amount, idempotencyKey="order-1")
    report = ProviderReport("PAY-20250131-ZZZZZZ", Outcome.SUCCEEDED, "success", frozenset({100}))
    await api.services.settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a")
    told = await scraped(api)
    assert told["payagg_idempotency_mismatches_total", ()] == 1
    assert told["payagg_anomalies_total", (("kind", "UNKNOWN_REFERENCE"),)] == 1
    assert told["payagg_anomalies_unclosed", (("kind", "UNKNOWN_REFERENCE"),)] == 1
    assert told["payagg_anomalies_unclosed", (("kind", "MISMATCH"),)] == 0


def test_whatever_is_counted_is_told() -> None:
    counted = {
        name
        for file in Path(payagg.__file__).parent.rglob("*.py")
        if "application.counters import" in (text := file.read_text())
        for name in re.findall(r"(?<![\w.])count\(\s*\"(\w+)\"", text)
    }
    assert counted == set(COUNTERS)
