"""Both adapters pass the shipped contract against their fakes over real HTTP, and find those of `dev`."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.provider_b.client import QUERY
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.providers.spec import ProviderSpec
from payagg.adapters.system import SystemEntropy
from payagg.domain.attempt import HandOff
from payagg.entrypoints.dev.fake_providers import WebhookMode
from payagg.entrypoints.dev.providers import fake_providers
from tests.contracts.provider import ProviderContract, ProviderHarness
from tests.support.assembly import SETTINGS
from tests.support.provider_rigs import (
    IMPATIENCE,
    MODE,
    SECRET_KEYS,
    SIGNING,
    credentials_a,
    credentials_b,
    fakes_running,
    launch_parameters,
)


def a_rig(
    slug: str, fake: Any, secrets: dict[str, str], specs: Sequence[ProviderSpec] = PROVIDERS, **own: Any
) -> ProviderHarness:
    """The adapter of one of the `specs` before its fake, whose events `secrets` sign."""

    def adapter(**deadline: Any) -> Any:
        return providers_of(specs, allow_loopback=True, **deadline)[slug]

    fake.book.webhooks = WebhookMode.HELD
    return ProviderHarness(
        provider=adapter(),
        impatient=adapter(deadline=IMPATIENCE),
        book=fake.book,
        header=f"x-{slug}-signature",
        pay=lambda reference, fee: fake.pay(reference, fees=fee),
        decline=fake.decline,
        sign=lambda body, environment: fake.signature(body, secrets[MODE[environment]]),
        **own,
    )


class TestPaystack(ProviderContract):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[ProviderHarness]:
        async with fakes_running() as fakes:
            yield a_rig(
                "provider_a",
                fakes.paystack,
                SECRET_KEYS,
                credentials=credentials_a(fakes),
                open=lambda hand_off: None,
                event=lambda reference: fakes.paystack.book.waiting[-1].body,
                calls_to_start=True,
                tells_environment=True,
                fails_by_event=False,
            )


class TestPayaza(ProviderContract):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[ProviderHarness]:
        async with fakes_running() as fakes:
            fake = fakes.payaza

            def opened(hand_off: HandOff) -> None:
                assert fake.open(launch_parameters(hand_off)) is None

            yield a_rig(
                "provider_b",
                fake,
                SIGNING,
                credentials=credentials_b(fakes),
                open=opened,
                event=lambda reference: fake.event(fake.book.charges[reference]).body,
                calls_to_start=False,
                tells_environment=False,
                fails_by_event=True,
            )


async def test_provider_b_can_be_asked_about_a_charge_in_dev() -> None:
    async with (
        fake_providers(SETTINGS, "http://127.0.0.1:1", SystemEntropy("PAY")) as (_, credentials),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for name in ("sandboxBaseUrl", "liveBaseUrl"):
            assert (await client.get(credentials["provider_b"][name] + QUERY)).status_code != 404
