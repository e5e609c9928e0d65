"""Every adapter passes the shipped contract against its fake over real HTTP, a third one too: a provider is one folder
and one line, and the product with the folder `acme` in its list sells through it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest
from payagg_testing.memory import MemoryStore

from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.provider_b.client import QUERY
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.providers.spec import ProviderSpec
from payagg.adapters.system import SystemEntropy
from payagg.application.gateways.seed import seed_gateways
from payagg.domain.attempt import HandOff
from payagg.entrypoints.dev.fake_providers import WebhookMode, serve_asgi
from payagg.entrypoints.dev.providers import fake_providers
from payagg.entrypoints.http.app import api_routes
from tests.contracts.provider import ProviderContract, ProviderHarness
from tests.integration.http.providers.acme import ACME
from tests.integration.http.providers.acme.fake import FakeAcme, credentials, fake_acme
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import admin_token, an_api, bearer
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
from tools.openapi.document import document


def a_rig(
    slug: str, fake: Any, secrets: dict[str, str], specs: Sequence[ProviderSpec] = PROVIDERS, **own: Any
) -> ProviderHarness:
    """The adapter of one of the `specs` before its fake, whose events `secrets` sign; most need no `own`."""

    def adapter(**deadline: Any) -> Any:
        return providers_of(specs, allow_loopback=True, **deadline)[slug]

    fake.book.webhooks = WebhookMode.HELD
    most: dict[str, Any] = dict.fromkeys(("calls_to_start", "tells_environment", "fails_by_event"), True)
    most["open"] = lambda hand_off: None
    most["event"] = lambda reference: fake.event(fake.book.charges[reference]).body
    return ProviderHarness(
        provider=adapter(),
        impatient=adapter(deadline=IMPATIENCE),
        book=fake.book,
        header=f"x-{slug}-signature",
        pay=lambda reference, fee: fake.pay(reference, fees=fee),
        decline=fake.decline,
        sign=lambda body, environment: fake.signature(body, secrets[MODE[environment]]),
        **{**most, **own},
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
                event=lambda reference: fakes.paystack.book.waiting[-1].body,
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
                calls_to_start=False,
                tells_environment=False,
            )


async def test_provider_b_can_be_asked_about_a_charge_in_dev() -> None:
    async with (
        fake_providers(SETTINGS, "http://127.0.0.1:1", SystemEntropy("PAY")) as (_, credentials),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for name in ("sandboxBaseUrl", "liveBaseUrl"):
            assert (await client.get(credentials["provider_b"][name] + QUERY)).status_code != 404


PRODUCT = replace(SETTINGS, providers=(*PROVIDERS, ACME))


class TestAcme(ProviderContract):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[ProviderHarness]:
        fake, modes = FakeAcme(), {mode: mode for mode in MODE.values()}
        async with serve_asgi(fake_acme(fake)) as base_url:
            yield a_rig("acme", fake, modes, [ACME], credentials=credentials(base_url))


async def test_a_third_provider_is_offered_charged_and_settled_over_http() -> None:
    services, fake = services_over(MemoryStore(), PRODUCT), FakeAcme()
    looks = {spec.slug: spec.branding for spec in PRODUCT.providers}
    await seed_gateways(services.gateways, "builtin", looks)
    async with serve_asgi(fake_acme(fake)) as base_url, an_api(services) as api:
        fake.book.webhook_urls["test"] = f"{api.origin}/api/v1/webhooks/acme/sandbox"
        admin, shop = bearer(admin_token()), await api.open_shop()

        listed = await api.get("/admin/gateways", admin)
        [gateway] = [one for one in listed if one["slug"] == "acme"]
        assert (gateway["id"], gateway["name"], gateway["status"]) == ("gw_acme", "Acme Pay", "DISABLED")
        place, sealed = "/admin/gateways/gw_acme", {"credentials": credentials(base_url)}
        wrong = {"credentials": {"sandboxKey": "ak_live_canary"}}
        refused = await api.client.patch(f"{place}/credentials", headers=admin, json=wrong)
        assert refused.json()["error"]["field"] == "credentials.sandboxKey"
        (await api.client.patch(f"{place}/credentials", headers=admin, json=sealed)).raise_for_status()
        (await api.client.post(f"{place}/enable", headers=admin)).raise_for_status()

        async def charged() -> str:
            reference: str = (await api.initiate(shop))["reference"]
            page = f"/public/payments/{reference}"
            options = (await api.get(f"{page}/gateways"))["gateways"]
            assert [one["available"] for one in options if one["slug"] == "acme"] == [True]
            process = await api.client.post(f"{page}/process", json={"gatewaySlug": "acme"})
            assert process.json()["data"]["checkoutUrl"] == f"{base_url}/pay/{fake.book.charges[reference].id}"
            return reference

        async def status(reference: str) -> tuple[str, str]:
            told = await api.get(f"/payments/{reference}", shop.as_sandbox)
            return told["status"], told["gateway"]

        by_event, asked = await charged(), await charged()
        fake.pay(by_event)
        await fake.book.wait_for_deliveries()
        assert (fake.book.answers, await status(by_event)) == ([200], ("SUCCESS", "acme"))
        fake.book.webhooks = WebhookMode.NEVER
        fake.pay(asked)
        (await api.client.get(f"/public/payments/{asked}/verify")).raise_for_status()
        assert await status(asked) == ("SUCCESS", "acme")

        described = document(api_routes(api.services.settings))["paths"]
        assert described["/webhooks/acme/live"]["post"]["operationId"] == "receiveAcmeLiveEvent"
        assert "/webhooks/acme" not in described, "the two aliases are of the interface"
        metrics = (await api.client.get(f"{api.origin}/metrics")).text
        assert 'payagg_provider_calls_total{gateway="acme",operation="fetch_charge",result="SUCCEEDED"} 1.0' in metrics
        assert 'payagg_refused_events_total{environment="LIVE",fault="WRONG_SECRET",provider="acme"} 0.0' in metrics
