"""The two fake providers, and the accounts that a business has there."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from payagg_testing.provider_faults import FakeServers, serve_fakes

from payagg.domain.attempt import HandOff
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import FakePayaza

IMPATIENCE = 0.5  # seconds; only for calls that are never answered
MODE = {Environment.SANDBOX: "test", Environment.LIVE: "live"}
SIGNING = {"test": "whsec_test_canary", "live": "whsec_live_canary"}
SECRET_KEYS = {"test": "sk_test_canary", "live": "sk_live_canary"}
PUBLIC_KEYS = {"test": "PZ78-PKTEST-CANARY", "live": "PZ78-PKLIVE-CANARY"}


def credentials_a(fakes: FakeServers) -> dict[str, str]:
    return {
        "sandboxSecretKey": SECRET_KEYS["test"],
        "liveSecretKey": SECRET_KEYS["live"],
        "sandboxBaseUrl": fakes.paystack.base_url,
        "liveBaseUrl": fakes.paystack.base_url,
    }


def credentials_b(fakes: FakeServers) -> dict[str, str]:
    return {
        "sandboxPublicKey": PUBLIC_KEYS["test"],
        "livePublicKey": PUBLIC_KEYS["live"],
        "sandboxSigningSecret": SIGNING["test"],
        "liveSigningSecret": SIGNING["live"],
        "sandboxBaseUrl": f"{fakes.payaza.base_url}/live",
        "liveBaseUrl": f"{fakes.payaza.base_url}/live",
    }


def launch_parameters(hand_off: HandOff) -> bytes:
    """What the launch page decodes from its own fragment."""
    encoded = hand_off.checkout_url.partition("#")[2]
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


@asynccontextmanager
async def fakes_running() -> AsyncIterator[FakeServers]:
    async with serve_fakes(payaza=FakePayaza(secrets=SIGNING)) as fakes:
        yield fakes
