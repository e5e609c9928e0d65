"""Where providers deliver their events: no credential, a signature over the raw bytes, a limit per address."""

from typing import Any

from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from payagg.application.provider_events import ProviderEventRoute, provider_event_routes
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.auth import services
from payagg.entrypoints.http.rate_limits import Limit, client_address
from payagg.entrypoints.http.wire import describe, envelope
from payagg.entrypoints.settings import Settings

TAG = "Inbound provider webhooks"
BODY_MAX = 1024 * 1024


class Acknowledgement(Struct, frozen=True):
    """The event is kept; what became of it is not the provider's concern."""

    received: bool


def routes_for(settings: Settings) -> list[HTTPRouteHandler]:
    """The six receivers, under the deployment's provider slugs."""
    return [_receiver(route) for route in provider_event_routes(settings.provider_a_slug, settings.provider_b_slug)]


def _receiver(route: ProviderEventRoute) -> HTTPRouteHandler:
    # VALIDATION_ERROR: compressed, cut short, or signed and yet no event where the route refuses that.
    errors = [
        ErrorCode.INVALID_WEBHOOK_SIGNATURE,
        ErrorCode.VALIDATION_ERROR,
        ErrorCode.RATE_LIMITED,
        ErrorCode.PAYLOAD_TOO_LARGE,
    ]
    if route.unconfigured not in errors:
        errors.append(route.unconfigured)

    @post(
        f"/webhooks{route.path}",
        status_code=200,
        name=f"webhooks{route.path}",
        opt=describe(
            route.operation_id,
            f"Receive {route.slug} events ({route.environment.value.lower()})",
            TAG,
            returns=Acknowledgement,
            body_max=BODY_MAX,
            errors=tuple(errors),
            description=f"The raw body is signed; the signature stands in `x-{route.slug}-signature`.",
        ),
    )
    async def receive(request: Request[Any, Any, Any]) -> Response[bytes]:
        limit: Limit = request.app.state.inbound
        address = client_address(request)
        # Before the body is read and hashed: a flood must cost us less than it costs its sender.
        limit.ensure_open(address)
        await limit.hit(address)
        body = await request.body()
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.scope["headers"]}
        await services(request).provider_events.receive(route, body, headers)
        return envelope(Acknowledgement(received=True))

    return receive
