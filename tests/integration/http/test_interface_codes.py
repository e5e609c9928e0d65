"""Codes of the interface that need a provider, or settings of a business, to be met over HTTP."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, an_api, assert_refused, bearer
from tests.support.provider_world import World, world_on

pytestmark = pytest.mark.anyio


@dataclass
class PayerApi:
    world: World
    client: httpx.AsyncClient

    async def process(self, payment: Payment, slug: str) -> httpx.Response:
        return await self.client.post(f"/public/payments/{payment.reference}/process", json={"gatewaySlug": slug})

    async def verify(self, payment: Payment) -> httpx.Response:
        return await self.client.get(f"/public/payments/{payment.reference}/verify")


@pytest.fixture
async def site(database_url: str, tmp_path: Path) -> AsyncIterator[PayerApi]:
    async with world_on(database_url, tmp_path) as world, an_api(world.services) as api:
        yield PayerApi(world, api.client)


@pytest.mark.rule("GATEWAY_NOT_FOUND", "GATEWAY_DISABLED")
async def test_a_business_that_opted_out_cannot_prefer_the_gateway(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    body: dict[str, Any] = {"amount": 100, "gateway": "provider_a"}
    assert (await api.initiate(shop, **body))["status"] == "INITIATED"
    listed = (await api.client.get(f"{shop.path}/gateways", headers=shop.as_owner)).json()["data"]
    gateway = next(one["id"] for one in listed if one["slug"] == "provider_a")
    off = await api.client.patch(f"{shop.path}/gateways/{gateway}", json={"isEnabled": False}, headers=shop.as_owner)
    assert off.json()["data"]["isEnabled"] is False
    answer = await api.client.post("/payments/initiate", json=body, headers=shop.as_sandbox)
    assert_refused(answer, 400, "GATEWAY_DISABLED", "gateway")
    admin = bearer(admin_token())
    assert (await api.client.post(f"/admin/gateways/{gateway}/disable", headers=admin)).status_code == 200
    answer = await api.client.post("/payments/initiate", json=body, headers=shop.as_sandbox)
    assert_refused(answer, 400, "GATEWAY_NOT_FOUND", "gateway")


@pytest.mark.rule("checkout.6", "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")
async def test_process_without_credentials_names_the_environment_as_not_configured(site: PayerApi) -> None:
    await site.world.set_credentials("provider_a", {"liveSecretKey": "sk_live_canary"})
    payment = await site.world.payment()
    assert_refused(await site.process(payment, "provider_a"), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")
    options = (await site.client.get(f"/public/payments/{payment.reference}/gateways")).json()["data"]["gateways"]
    shown = {option["slug"]: (option["available"], option["unavailableReason"]) for option in options}
    assert shown["provider_a"] == (False, "NOT_CONFIGURED")
    assert shown["provider_b"] == (True, None)


@pytest.mark.rule("checkout.5")
async def test_launch_parameters_of_provider_b_are_encoded_in_the_checkout_url(site: PayerApi) -> None:
    payment = await site.world.payment(Environment.LIVE)
    data = (await site.process(payment, "provider_b")).json()["data"]
    assert data["handoff"] == "SDK"
    assert data["checkoutUrl"].startswith(f"http://127.0.0.1:8000/checkout/{payment.reference}/launch#")


@pytest.mark.rule("GATEWAY_NOT_AVAILABLE")
async def test_verify_of_a_payment_whose_provider_lost_its_credentials_is_refused(site: PayerApi) -> None:
    payment = await site.world.handed_over("provider_b")
    await site.world.set_credentials("provider_b", {"livePublicKey": "PZ78-PKLIVE-CANARY"})
    assert_refused(await site.verify(payment), 400, "GATEWAY_NOT_AVAILABLE")


@pytest.mark.rule("PAYMENT_AMOUNT_MISMATCH")
async def test_verify_that_finds_another_amount_is_a_502_and_moves_nothing(site: PayerApi) -> None:
    payment = await site.world.handed_over()
    book = site.world.fakes.paystack.book
    book.alter = {"amount": payment.amount - 1, "requested_amount": payment.amount - 1}
    book.webhook_urls.clear()
    site.world.fakes.paystack.pay(payment.reference)
    for _ in range(2):
        assert_refused(await site.verify(payment), 502, "PAYMENT_AMOUNT_MISMATCH")
    assert (await site.world.read(payment)).status.value == "PENDING"
