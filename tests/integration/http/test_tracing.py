"""Traces, when they are asked for: a span for each request, without what a caller keeps secret."""

from dataclasses import replace

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from payagg.adapters.memory import MemoryStore
from payagg.entrypoints.settings import read_settings
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import an_api

pytestmark = pytest.mark.anyio


def test_traces_are_off_unless_asked_for() -> None:
    assert not read_settings({}).otel
    assert read_settings({"PAYAGG_OTEL": "1"}).otel


async def test_a_request_is_one_span_that_names_the_route_and_no_secret() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    async with an_api(services_over(MemoryStore(), replace(SETTINGS, otel=True))) as api:
        shop = await api.open_shop()
        await api.initiate(shop, customerEmail="ada@example.com")
    [span] = exporter.get_finished_spans()
    assert "/payments/initiate" in span.name
    written = span.to_json()
    assert shop.sandbox not in written
    assert "ada@example.com" not in written
