"""Where providers deliver their events: no credential, a signature over the raw bytes, a limit per address."""

from msgspec import Struct

from payagg.application.ports.providers import ProviderEventRoute
from payagg.entrypoints.http.api.auth import provider_signature
from payagg.entrypoints.http.server.routing import Call, Routes
from payagg.entrypoints.settings import Settings

BODY_MAX = 1024 * 1024
SIGNATURE = {
    "type": "string",
    "minLength": 1,
    "maxLength": 512,
    "pattern": "^[\\x21-\\x7e]+$",
    "description": "HMAC-SHA512 of the raw body, keyed with the provider's signing secret of this environment.",
}


class Acknowledgement(Struct, frozen=True):
    """The event is stored; its result is not the provider's concern."""

    received: bool


def routes_for(settings: Settings) -> Routes:
    """The receivers, under the deployment's provider slugs."""
    routes = Routes("Inbound provider webhooks")
    for place in settings.event_routes:
        _add_receiver(routes, place)
    return routes


def _add_receiver(routes: Routes, place: ProviderEventRoute) -> None:
    @routes.add(
        "POST",
        f"/webhooks{place.path}",
        summary=f"Receive {place.slug} events ({place.environment.value.lower()})",
        id=place.operation_id,
        guard=provider_signature,
        body_max=BODY_MAX,
        errors=(place.unconfigured,),
        description=f"The raw body is signed; the signature is in `x-{place.slug}-signature`.",
        request_headers={f"x-{place.slug}-signature": SIGNATURE},
    )
    async def receive(call: Call[None, bytes]) -> Acknowledgement:
        sent = call.request.scope["headers"]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in sent}
        await call.services.provider_events.receive(place, call.body, headers)
        return Acknowledgement(received=True)
