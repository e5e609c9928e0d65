"""OpenTelemetry spans of requests through Litestar's plugin, when asked for; `process/tracing.py` has the rest."""

from litestar.plugins import InitPlugin

from payagg.entrypoints.settings import Settings, SettingsError


def tracing_plugins(settings: Settings) -> list[InitPlugin]:
    """Empty unless switched on; raises SettingsError when the packages are missing."""
    if not settings.otel:
        return []
    try:
        from litestar.plugins.opentelemetry import OpenTelemetryConfig, OpenTelemetryPlugin
    except ImportError:
        raise SettingsError("PAYAGG_OTEL needs more packages: pip install 'payagg[otel]'.") from None
    # A span each for receiving and sending would only repeat the request's own.
    return [OpenTelemetryPlugin(OpenTelemetryConfig(exclude_spans=["receive", "send"]))]
