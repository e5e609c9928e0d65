"""Codes of the interface that need a provider, or settings of a business, to be met over HTTP."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from tests.support.http_world import Api, admin_token, an_api, assert_refused, bearer
from tests.support.provider_world import world_on

pytestmark = pytest.mark.anyio


@pytest.mark.rule("gateways.7", "GATEWAY_NOT_FOUND", "GATEWAY_DISABLED")
async def test_routing_follows_every_switch_at_once(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    listed = (await api.client.get(f"{shop.path}/gateways", headers=shop.as_owner)).json()["data"]
    gateway = next(one["id"] for one in listed if one["slug"] == "provider_a")
    admin = bearer(admin_token())
    body: dict[str, Any] = {"amount": 100, "gateway": "provider_a"}

    async def own(is_enabled: bool) -> httpx.Response:
        choice = f"{shop.path}/gateways/{gateway}"
        return await api.client.patch(choice, json={"isEnabled": is_enabled}, headers=shop.as_owner)

    async def everybodys(move: str) -> httpx.Response:
        return await api.client.post(f"/admin/gateways/{gateway}/{move}", headers=admin)

    assert (await api.initiate(shop, **body))["status"] == "INITIATED"
    for switch, code in (
        (own(False), "GATEWAY_DISABLED"),
        (everybodys("disable"), "GATEWAY_NOT_FOUND"),
        (everybodys("enable"), "GATEWAY_DISABLED"),
        (own(True), None),
        (everybodys("disable"), "GATEWAY_NOT_FOUND"),
    ):
        assert (await switch).status_code == 200
        answer = await api.client.post("/payments/initiate", json=body, headers=shop.as_sandbox)
        if code is None:
            assert answer.status_code == 201
        else:
            assert_refused(answer, 400, code, "gateway")


@pytest.mark.rule("checkout.5", "checkout.6", "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "GATEWAY_NOT_AVAILABLE")
@pytest.mark.rule("PAYMENT_AMOUNT_MISMATCH")
async def test_a_payer_meets_providers_with_and_without_credentials(database_url: str, tmp_path: Path) -> None:
    async with world_on(database_url, tmp_path) as world, an_api(world.services) as api:

        async def process(payment: Payment, slug: str) -> httpx.Response:
            path = f"/public/payments/{payment.reference}/process"
            return await api.client.post(path, json={"gatewaySlug": slug})

        async def verify(payment: Payment) -> httpx.Response:
            return await api.client.get(f"/public/payments/{payment.reference}/verify")

        payment = await world.handed_over()
        book = world.fakes.paystack.book
        book.alter = {"amount": payment.amount - 1, "requested_amount": payment.amount - 1}
        book.webhook_urls.clear()
        world.fakes.paystack.pay(payment.reference)
        for _ in range(2):
            assert_refused(await verify(payment), 502, "PAYMENT_AMOUNT_MISMATCH")
        assert (await world.read(payment)).status.value == "PENDING"

        live = await world.payment(Environment.LIVE)
        data = (await process(live, "provider_b")).json()["data"]
        assert data["handoff"] == "SDK"
        assert data["checkoutUrl"].startswith(f"http://127.0.0.1:8000/checkout/{live.reference}/launch#")
        await world.set_credentials("provider_a", {"liveSecretKey": "sk_live_canary"})
        payment = await world.payment()
        assert_refused(await process(payment, "provider_a"), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED")
        options = (await api.client.get(f"/public/payments/{payment.reference}/gateways")).json()["data"]["gateways"]
        shown = {option["slug"]: (option["available"], option["unavailableReason"]) for option in options}
        assert shown["provider_a"] == (False, "NOT_CONFIGURED")
        assert shown["provider_b"] == (True, None)
        handed_over = await world.handed_over("provider_b")
        await world.set_credentials("provider_b", {"livePublicKey": "PZ78-PKLIVE-CANARY"})
        assert_refused(await verify(handed_over), 400, "GATEWAY_NOT_AVAILABLE")
