"""What operators watch: /metrics over HTTP, shared by all processes, and the service's health."""

import asyncio
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.parser import text_string_to_metric_families

import payagg
from payagg.adapters.postgres.migrations import HEAD
from payagg.adapters.postgres.store import PostgresStore
from payagg.application import telemetry
from payagg.domain.health import Health
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment
from payagg.entrypoints.http.api.metrics import COUNTERS, HISTOGRAMS
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, admin_token, an_api, bearer, working
from tests.support.machine import program
from tests.support.provider_world import world_on
from tests.support.receivers import a_receiver

Sample = tuple[str, tuple[tuple[str, str], ...]]


@pytest.fixture
def api(own_api: Api) -> Api:
    return own_api


async def scraped(api: Api) -> dict[Sample, float]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{api.origin}/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, CONTENT_TYPE_LATEST)
    families = text_string_to_metric_families(answer.text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


@pytest.mark.rule("GET /admin/health")
async def test_what_happens_is_counted_once_for_all_processes(api: Api, store: PostgresStore) -> None:
    telemetry.counts.clear()  # what other tests of this process left
    quiet = await scraped(api)
    assert quiet["payagg_deliveries_due", ()] == quiet["payagg_deliveries_oldest_due_seconds", ()] == 0
    shown = await api.get("/admin/health", bearer(admin_token("SUPPORT")))
    versions = shown.pop("versions")
    assert (versions["payagg"], versions["python"], versions["migration"]) == (payagg.__version__, sys.version, HEAD)
    assert re.match(r"[0-9]+\.[0-9]+", versions["postgres"])
    counts = ("deliveriesOldestDueSeconds", "paymentsOldestUnaskedSeconds", "webhookEndpointsDeactivated")
    lists = ("pausedProviders", "unclosedAnomalies", "refusedEvents")
    assert shown == {**dict.fromkeys(counts, 0), **{name: [] for name in lists}}
    now, pause = api.services.clock.now(), timedelta(minutes=5)
    async with store.begin() as tx:
        for provider, until in (("provider_a", now + pause), ("provider_b", now - pause)):
            await tx.health.lock(provider, Environment.LIVE)
            await tx.health.save(Health(provider, Environment.LIVE, 5, until, pause))
    shop = await api.open_shop()
    for amount in (150_000, 150_001):
        await api.initiate(shop, amount=amount, idempotencyKey="order-1")
    for body in (b"1", b"2"):
        assert (await api.client.post("/webhooks/provider_a/live", content=body)).status_code == 400
    report = ProviderReport("PAY-20250131-ZZZZZZ", Outcome.SUCCEEDED, "success", frozenset({100}))
    await api.services.settlement.report(report, "provider_a", Environment.SANDBOX, "event:provider_a")
    async with a_receiver() as receiver, a_receiver(answer=lambda _: (410, "")) as gone:
        await api.add_endpoint(shop, receiver.origin)
        await api.add_endpoint(shop, gone.origin)
        await api.paid(shop)
        await asyncio.sleep(0.05)
        waiting = await scraped(api)
        assert waiting["payagg_deliveries_due", ()] == 2
        assert waiting["payagg_deliveries_oldest_due_seconds", ()] >= 0.05
        shown = await api.get("/admin/health", bearer(admin_token("SUPPORT")))
        assert shown["deliveriesOldestDueSeconds"] >= 0.05
        assert shown["unclosedAnomalies"] == [{"kind": "UNKNOWN_REFERENCE", "count": 1}]
        assert [(one["fault"], one["count"]) for one in shown["refusedEvents"]] == [("NO_CREDENTIALS", 2)]
        (paused,) = shown["pausedProviders"]
        assert (paused["gateway"], paused["environment"], 0 < paused["seconds"] <= 300) == ("provider_a", "LIVE", True)
        assert len(await api.services.store.queue.claim(api.services.clock.now(), 10, 10, timedelta(0))) == 2
        await api.services.dispatcher.run_once()
    async with working(api.services) as running:
        while not (told := await scraped(api))["payagg_worker_sweeps_total", (("sweep", "deliveries"),)]:
            assert not running.done()
    initiated = (("method", "POST"), ("route", "/api/v1/payments/initiate"))
    for name, labels, value in (
        ("delivery_tries_total", (("result", "2xx"),), 1),
        ("delivery_leases_lapsed_total", (), 2),
        ("webhook_endpoints_deactivated", (), 1),
        ("payment_transitions_total", (("environment", "SANDBOX"), ("from", "INITIATED"), ("to", "SUCCESS")), 1),
        ("requests_total", (*initiated, ("status", "201")), 2),
        ("request_duration_seconds_count", initiated, 3),
        ("request_duration_seconds_bucket", (("le", "+Inf"), *initiated), 3),
        ("database_up", (), 1),
        ("idempotency_mismatches_total", (), 1),
        ("anomalies_total", (("kind", "UNKNOWN_REFERENCE"),), 1),
        ("anomalies_unclosed", (("environment", "UNKNOWN"), ("kind", "UNKNOWN_REFERENCE")), 1),
        ("anomalies_unclosed", (("environment", "LIVE"), ("kind", "MISMATCH")), 0),
    ):
        assert told[f"payagg_{name}", labels] == value, (name, labels)
    assert told["payagg_request_duration_seconds_sum", initiated] > 0

    # Another process: counts of its own are added, and nothing is told twice.
    telemetry.counts.update({("delivery_tries", "2xx"): 2})
    async with an_api(services_over(store)) as other:
        assert (await scraped(other))["payagg_delivery_tries_total", (("result", "2xx"),)] == 3


async def test_names_and_labels_are_as_prometheus_wants_them(api: Api) -> None:
    await api.paid(await api.open_shop())
    told = (await api.client.get(f"{api.origin}/metrics")).content
    command = [program("promtool", "prometheus"), "check", "metrics"]
    linted = await asyncio.to_thread(subprocess.run, command, input=told, capture_output=True)
    assert (linted.returncode, linted.stdout + linted.stderr) == (0, b"")


async def test_calls_to_providers_are_counted_and_an_overdue_question_told(database_url: str, tmp_path: Path) -> None:
    telemetry.counts.clear()
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


def test_a_duration_falls_into_the_smallest_bucket_that_holds_it() -> None:
    telemetry.counts.clear()
    for seconds in (0.005, 0.0051, 10.0, 10.1):
        telemetry.observe("x", seconds, "a")
    assert telemetry.counts == {
        ("x", "a", "0.005"): 1, ("x", "a", "0.01"): 1, ("x", "a", "10.0"): 1, ("x", "a", "+Inf"): 1,
        ("x_sum", "a"): 20_110_100,
    }  # fmt: skip
    telemetry.counts.clear()


@pytest.mark.rule("access.18")
async def test_a_token_guards_the_metrics_and_without_one_dev_alone_shows_them(store: PostgresStore) -> None:
    word = "a long word of the operator's"
    for settings, sent, status in (
        ({"metrics_token": None, "dev": False}, {}, 401),
        ({"metrics_token": None, "dev": True}, {}, 200),
        ({"metrics_token": word}, {}, 401),
        ({"metrics_token": word}, bearer("wrong"), 401),
        ({"metrics_token": word}, bearer(word), 200),
    ):
        async with an_api(services_over(store, replace(SETTINGS, **settings))) as api:
            assert (await api.client.get(f"{api.origin}/metrics", headers=sent)).status_code == status


async def test_counts_are_kept_while_the_database_is_away() -> None:
    telemetry.counts.clear()
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/nothing", pool_size=1, pgbouncer=False)
    telemetry.count("delivery_tries", "2xx")
    async with an_api(services_over(store)) as api:
        found = await scraped(api)
        assert found["payagg_database_up", ()] == 0
        assert found["payagg_delivery_tries_total", (("result", "2xx"),)] == 1
    await store.close()
    telemetry.counts.clear()


def test_whatever_is_counted_is_told() -> None:
    files = {file: file.read_text() for file in Path(payagg.__file__).parent.rglob("*.py")}
    core = [text for file, text in files.items() if "extensions" not in file.parts]
    counting = [text for text in core if "application.telemetry import" in text]
    counted = {name for text in counting for name in re.findall(r"(?<![\w.])count\(\s*\"(\w+)\"", text)}
    observes = re.compile(r"(?<![\w.])observe(?:_bytes)?\(\s*\"(\w+)\"")
    observed = {name for text in files.values() for name in observes.findall(text)}
    assert (counted, observed) == (set(COUNTERS), set(HISTOGRAMS))


async def test_what_can_be_known_beforehand_begins_at_zero(api: Api) -> None:
    telemetry.counts.clear()
    told = await scraped(api)
    for name, labels in (
        ("anomalies", (("kind", "LATE_SUCCESS"),)),
        ("delivery_tries", (("result", "no answer"),)),
        ("payment_transitions", (("environment", "LIVE"), ("from", "PENDING"), ("to", "SUCCESS"))),
        ("provider_calls", (("gateway", "provider_a"), ("operation", "fetch_charge"), ("result", "TIMEOUT"))),
        ("refused_events", (("environment", "LIVE"), ("fault", "WRONG_SECRET"), ("provider", "provider_b"))),
        ("worker_sweeps", (("sweep", "deliveries"),)),
        ("worker_sweeps", (("sweep", "expiry"),)),
        ("connections_refused", ()),
    ):
        assert told.get((f"payagg_{name}_total", labels)) == 0, (name, labels)
    assert told["payagg_deliveries_due", ()] == told["payagg_inbox_due", ()] == 0
    [build] = [dict(labels) for name, labels in told if name == "payagg_build_info"]
    assert build["version"] == payagg.__version__
