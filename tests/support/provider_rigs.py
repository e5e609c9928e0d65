"""The two adapters against their fakes over real HTTP, for the contract and the journeys."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from payagg.adapters.providers.registry import providers_of
from payagg.domain.attempt import HandOff
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import FakePayaza, FakeServers, WebhookMode, serve_fakes
from tests.contracts.provider_rig import Rig

MODE = {Environment.SANDBOX: "test", Environment.LIVE: "live"}
SIGNING = {"test": "whsec_test_canary", "live": "whsec_live_canary"}
SECRET_KEYS = {"test": "sk_test_canary", "live": "sk_live_canary"}
PUBLIC_KEYS = {"test": "PZ78-PKTEST-CANARY", "live": "PZ78-PKLIVE-CANARY"}
IMPATIENCE = 0.5  # seconds; only for calls that are never answered


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


@asynccontextmanager
async def paystack_rig() -> AsyncIterator[Rig]:
    async with fakes_running() as fakes:
        fake = fakes.paystack
        fake.book.webhooks = WebhookMode.HELD

        def event(reference: str) -> bytes:
            return fake.book.waiting[-1].body

        yield Rig(
            provider=providers_of(allow_loopback=True)["provider_a"],
            impatient=providers_of(allow_loopback=True, deadline=IMPATIENCE)["provider_a"],
            book=fake.book,
            credentials=credentials_a(fakes),
            header="x-provider_a-signature",
            open=lambda hand_off: None,
            pay=lambda reference, fee: fake.pay(reference, fees=fee),
            decline=fake.decline,
            event=event,
            sign=lambda body, environment: fake.signature(body, SECRET_KEYS[MODE[environment]]),
            calls_to_start=True,
            tells_environment=True,
            fails_by_event=False,
        )


@asynccontextmanager
async def payaza_rig() -> AsyncIterator[Rig]:
    async with fakes_running() as fakes:
        fake = fakes.payaza
        fake.book.webhooks = WebhookMode.HELD

        def opened(hand_off: HandOff) -> None:
            assert fake.open(launch_parameters(hand_off)) is None

        yield Rig(
            provider=providers_of(allow_loopback=True)["provider_b"],
            impatient=providers_of(allow_loopback=True, deadline=IMPATIENCE)["provider_b"],
            book=fake.book,
            credentials=credentials_b(fakes),
            header="x-provider_b-signature",
            open=opened,
            pay=lambda reference, fee: fake.pay(reference, fees=fee),
            decline=fake.decline,
            event=lambda reference: fake.event(fake.book.charges[reference]).body,
            sign=lambda body, environment: fake.signature(body, SIGNING[MODE[environment]]),
            calls_to_start=False,
            tells_environment=False,
            fails_by_event=True,
        )
