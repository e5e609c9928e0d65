"""OpenTelemetry for the whole process, when asked for with PAYAGG_OTEL.

Where spans go is for OpenTelemetry's own variables to say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME,
OTEL_TRACES_SAMPLER and so on). A provider that is there already, as that of `opentelemetry-instrument`, is left alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from payagg.application.telemetry import trace_with
from payagg.entrypoints.settings import Settings, SettingsError

SERVICE = "payagg"


@contextmanager
def tracing(settings: Settings) -> Iterator[None]:
    """Spans of requests, providers, deliveries, sweeps and the database go out while the block runs, if wanted; leaving
    sends the last ones. Raises SettingsError when the packages are missing."""
    if not settings.otel:
        yield
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError("PAYAGG_OTEL needs more packages: pip install 'payagg[otel]'.") from None
    own = None
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        named = Resource.create()
        if str(named.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            named = named.merge(Resource({SERVICE_NAME: SERVICE}))
        own = TracerProvider(resource=named)
        own.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(own)
    tracer = trace.get_tracer(SERVICE)
    trace_with(lambda name, attributes: tracer.start_as_current_span(name, attributes=attributes))
    try:
        yield
    finally:
        trace_with(None)
        if own is not None:
            own.shutdown()
