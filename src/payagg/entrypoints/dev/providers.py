"""The fake providers beside `dev`, with the credentials that point our gateways at them."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from payagg.application.ports.outside import Entropy
from payagg.entrypoints.dev.fake_providers import (
    Book,
    FakePayaza,
    FakePaystack,
    fake_payaza,
    fake_paystack,
    serve_asgi,
)
from payagg.entrypoints.http.server.own_hosts import OwnHosts
from payagg.entrypoints.settings import Settings

SDK = "/js/v1/bundle.js"
# Our inbound route per provider mode.
ROUTES = {"test": "sandbox", "live": "live"}


@asynccontextmanager
async def fake_providers(
    settings: Settings, origin: str, entropy: Entropy
) -> AsyncIterator[tuple[Settings, Mapping[str, Mapping[str, str]]]]:
    """Both fakes on the ports after ours if free; yields their settings, and credentials by gateway slug. Keys are new
    at each start, as the fakes keep no state."""
    hex = entropy.hex
    slugs = {spec.name: spec.slug for spec in settings.providers}
    a, b = slugs["provider_a"], slugs["provider_b"]
    secrets = {"test": hex(16), "live": hex(16)}
    paystack = FakePaystack(header=f"x-{a}-signature", book=_book(origin, a))
    payaza = FakePayaza(secrets=secrets, header=f"x-{b}-signature", book=_book(origin, b))
    port = int(origin.rpartition(":")[2])
    async with (
        serve_asgi(OwnHosts(fake_paystack(paystack), ()), _free(port + 1)) as paystack.base_url,
        serve_asgi(OwnHosts(fake_payaza(payaza), ()), _free(port + 2)) as payaza.base_url,
    ):
        yield (
            settings.having(provider_b_sdk_url=f"{payaza.base_url}{SDK}"),
            {
                a: {
                    "sandboxSecretKey": f"sk_test_{hex(12)}",
                    "liveSecretKey": f"sk_live_{hex(12)}",
                    "sandboxBaseUrl": paystack.base_url,
                    "liveBaseUrl": paystack.base_url,
                },
                b: {
                    "sandboxPublicKey": f"PZ78-PKTEST-{hex(12)}",
                    "sandboxSigningSecret": secrets["test"],
                    "livePublicKey": f"PZ78-PKLIVE-{hex(12)}",
                    "liveSigningSecret": secrets["live"],
                    "sandboxBaseUrl": f"{payaza.base_url}/live",  # part of its address for test keys, too
                    "liveBaseUrl": f"{payaza.base_url}/live",
                },
            },
        )


def _book(origin: str, slug: str) -> Book:
    return Book(webhook_urls={mode: f"{origin}/api/v1/webhooks/{slug}/{name}" for mode, name in ROUTES.items()})


def _free(port: int) -> int:
    """`port` when it is free, else 0: any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return 0
    return port
