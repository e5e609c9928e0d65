"""The HTTP application: routes, error envelopes, health, description. No business rule."""

import asyncio
from collections import ChainMap
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, cast

from litestar import Litestar, Request, Response, get
from litestar.config.app import AppConfig
from litestar.handlers import HTTPRouteHandler
from litestar.plugins import InitPlugin
from litestar.types import ControllerRouterHandler

from payagg.application.ports.outside import Unavailable
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.extensions import parts
from payagg.entrypoints.http.api import (
    audit,
    businesses,
    checkout,
    gateways,
    metrics,
    operations,
    payment_history,
    payment_search,
    payments,
    provider_events,
    webhooks,
)
from payagg.entrypoints.http.checkout_page import pages
from payagg.entrypoints.http.docs import routes as docs
from payagg.entrypoints.http.server.errors import EXCEPTION_HANDLERS, try_later
from payagg.entrypoints.http.server.middleware import BODY_SECONDS, STOPPING, ASGIApp, Edge
from payagg.entrypoints.http.server.own_hosts import OwnHosts
from payagg.entrypoints.http.server.rate_limits import Limits
from payagg.entrypoints.http.server.routing import API_PATH, Part, dispatch
from payagg.entrypoints.http.server.routing import services as services_of
from payagg.entrypoints.http.server.wire import envelope
from payagg.entrypoints.settings import Settings

DEFAULTS = Settings()
NOT_CURRENT = "The database schema is not current."
READY_SECONDS = 2.0  # a load balancer asks often, and must get "no" sooner than a call gives up on the database


@get("/healthz")
async def healthz() -> Response[bytes]:
    """The process is alive; checks nothing else."""
    return envelope({"status": "ok"})


@get("/readyz")
async def readyz(request: Request[Any, Any, Any]) -> Response[bytes]:
    """200 when the database is reachable, its schema fits, and this process is not stopping; 503 otherwise."""
    use_cases, app = services_of(request), cast(Application, request.app)
    chance = use_cases.entropy.chance()
    if app.draining.is_set():
        raise try_later(chance, STOPPING)
    try:
        async with asyncio.timeout(READY_SECONDS):
            is_current = await use_cases.store.is_current()
    except TimeoutError:
        raise Unavailable("the database did not answer in time") from None
    if not is_current:
        raise try_later(chance, NOT_CURRENT)
    return envelope({"status": "ready"})


def api_routes(settings: Settings = DEFAULTS) -> list[HTTPRouteHandler]:
    """Every handler under /api/v1; the description and the tests read the same list."""
    merchants = (businesses.keys, webhooks.routes, gateways.of_merchants)
    watched = (operations.routes, operations.reconciliations, audit.routes, operations.health)
    of_payments = (payments.routes, payment_search.routes, payment_history.routes, checkout.routes)
    every = (*of_payments, *merchants, gateways.routes, businesses.routes, *watched)
    return [*(handler for routes in every for handler in routes), *provider_events.routes_for(settings)]


class Application(Litestar):
    """Litestar wrapped in `edge`: Litestar's middleware runs after routing and would miss 404s and 405s."""

    # Litestar's own `state` looks each name up twice, 3 % of a read.
    services: Services
    limits: Limits
    draining: asyncio.Event
    edge: Edge

    def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        return self.edge(scope, receive, send)

    @staticmethod
    def _patch_opentelemetry_middleware(config: AppConfig) -> AppConfig:
        """Litestar's looks for a tracer among the middleware, where we have none: 84 modules, 2 MiB."""
        return config


def create_app(
    services: Services,
    *,
    extra_routes: Sequence[ControllerRouterHandler] = (),
    body_seconds: float = BODY_SECONDS,
    own_hosts: Collection[str] | None = None,
    draining: asyncio.Event | None = None,
) -> Application:
    """The HTTP application over ready services; a request's body must arrive within `body_seconds`. With `own_hosts` it
    answers only under these and loopback names. Once `draining` is set, it is not ready."""
    settings = services.settings
    handlers: list[ControllerRouterHandler] = [
        Part(API_PATH, route_handlers=api_routes(settings)),
        *pages.routes,
        *metrics.routes,
        *(route for routes in parts(settings.extensions, "routes") for route in routes(services)),
        *docs.routes_for(settings),
        healthz,
        readyz,
        *extra_routes,
    ]
    app = Application(
        # Litestar rebuilds its routing tree for each handler registered separately.
        route_handlers=[Part("/", route_handlers=handlers)],
        plugins=_tracing_plugins(settings),
        exception_handlers=dict(ChainMap(*parts(settings.extensions, "exception_handlers"), EXCEPTION_HANDLERS)),
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
        debug=False,
    )
    app.services, app.limits = services, Limits.of(settings, services.store, services.clock)
    app.draining = draining or asyncio.Event()
    framework: ASGIApp = partial(Litestar.__call__ if settings.otel else dispatch, app)
    for around in parts(settings.extensions, "middleware"):
        framework = around(framework, services, app.limits)
    app.edge = Edge(
        framework if own_hosts is None else OwnHosts(framework, own_hosts),
        services.entropy.hex,
        base_url=settings.base_url,
        body_seconds=body_seconds,
        cors_origins=settings.cors_origins,
        proxies=settings.trusted_proxies,
    )
    return app


def _tracing_plugins(settings: Settings) -> list[InitPlugin]:
    """OpenTelemetry spans of requests when asked for; `process/tracing.py` has the rest, and looks for the packages."""
    if not settings.otel:
        return []
    from litestar.plugins.opentelemetry import OpenTelemetryConfig, OpenTelemetryPlugin

    # A span each for receiving and sending would only repeat the request's own.
    return [OpenTelemetryPlugin(OpenTelemetryConfig(exclude_spans=["receive", "send"]))]
