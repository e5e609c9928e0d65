"""Traces, when they are asked for: a span for each request, without what a caller keeps secret."""

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from payagg_testing.conformance.inbox import Inbox

from payagg.adapters.memory import MemoryStore
from payagg.application.upkeep.worker import run as run_worker
from payagg.entrypoints.process.tracing import tracing
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import an_api
from tests.support.processes import serving
from tests.support.provider_world import world_on


@pytest.fixture(scope="module")
def provider() -> TracerProvider:
    """OpenTelemetry takes one provider for each process."""
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    return provider


@pytest.fixture
def exporter(provider: TracerProvider) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


async def test_a_request_is_one_span_that_names_the_route_and_no_secret(exporter: InMemorySpanExporter) -> None:
    async with an_api(services_over(MemoryStore(), replace(SETTINGS, otel=True))) as api:
        shop = await api.open_shop()
        await api.initiate(shop, customerEmail="ada@example.com")
    [span] = exporter.get_finished_spans()
    assert "/payments/initiate" in span.name
    written = span.to_json()
    assert shop.sandbox not in written
    assert "ada@example.com" not in written


async def test_providers_the_database_and_the_worker_have_spans_under_their_request(
    exporter: InMemorySpanExporter, database_url: str, tmp_path: Path
) -> None:
    with tracing(replace(SETTINGS, otel=True)):
        async with world_on(database_url, tmp_path) as world:
            await world.handed_over("provider_a")
            stop = asyncio.Event()
            working = asyncio.create_task(run_worker(world.services, stop))
            names: set[str] = set()
            while not {"sweep expiry", "provider start_charge", "postgres statement", "postgres transaction"} <= names:
                names = {span.name for span in exporter.get_finished_spans()}
                assert not working.done()
                await asyncio.sleep(0)
            stop.set()
            await working
    spans = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}
    under = {
        (spans[span.parent.span_id].name, span.name)
        for span in spans.values()
        if span.parent and span.parent.span_id in spans
    }
    assert ("postgres transaction", "postgres statement") in under
    told = "".join(span.to_json() for span in spans.values())
    assert "INSERT INTO" in told
    assert "ada@example.com" not in told
    assert "sk_test_" not in told


def test_a_process_sends_its_spans_with_the_extra_alone(database_url: str) -> None:
    with closing(Inbox.serve()) as collector:
        with serving(database_url, PAYAGG_OTEL="true", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as (_, origin):
            assert httpx.get(f"{origin}/readyz", trust_env=False).status_code == 200
        told = b"".join(one.body for one in collector.deliveries_at("/v1/traces"))
    for word in (b"payagg", b"GET /readyz", b"postgres statement", b"sweep expiry"):
        assert word in told
