"""Software we did not write judges our fakes, our signatures and our launch parameters."""

import importlib
import json
import os
import subprocess
from asyncio import to_thread
from collections.abc import AsyncIterator
from typing import Any

import pytest
from payagg_testing.builders import REFERENCE
from payagg_testing.provider_faults import FakeServers

from payagg.adapters.providers.provider_b.client import launch_parameters
from payagg.domain.attempt import Charge
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.machine import NODE, node_package, program
from tests.support.provider_rigs import PUBLIC_KEYS, SECRET_KEYS, SIGNING, fakes_running


@pytest.fixture
async def fakes() -> AsyncIterator[FakeServers]:
    async with fakes_running() as fakes:
        yield fakes


def judge(name: str) -> Any:
    """A package of others; without it the test is skipped, but never in CI."""
    return importlib.import_module(name) if os.environ.get("CI") else pytest.importorskip(name)


async def test_paystacks_clients_read_our_fake_and_accept_its_events(fakes: FakeServers) -> None:
    pypaystack2 = judge("pypaystack2")

    class PointedClient(pypaystack2.PaystackClient):  # type: ignore[misc,name-defined]
        _BASE_URL = fakes.paystack.base_url

    client = PointedClient(secret_key=SECRET_KEYS["test"])
    client.transactions._BASE_URL = fakes.paystack.base_url
    fakes.paystack.book.webhooks = WebhookMode.HELD
    wanted = {"amount": 150_000, "email": "ada@example.com", "reference": REFERENCE, "currency": "NGN"}
    begun, again = [await to_thread(client.transactions.initialize, **wanted) for _ in range(2)]
    assert (begun.status, begun.data.reference) == (True, REFERENCE)
    assert begun.data.authorization_url.startswith(fakes.paystack.base_url)
    assert (again.status, again.message) == (False, "Duplicate Transaction Reference")
    fakes.paystack.pay(REFERENCE, fees=2_250)
    told = (await to_thread(client.transactions.verify, REFERENCE)).data
    assert (told.status, told.reference, told.amount, told.requested_amount) == ("success", REFERENCE, 152_250, 150_000)
    assert (told.domain, told.currency) == ("test", "NGN")
    unknown = await to_thread(client.transactions.verify, "PAY-20250131-NOBODY")
    assert (unknown.status, unknown.status_code) == (False, 404)
    [event] = fakes.paystack.book.waiting
    signature = event.headers[fakes.paystack.header]
    assert client.is_verified_webhook_payload(event.body, signature)
    webhook = judge("paystackease.core._webhook").PayStackSignature
    assert webhook.verify_headers(event.body.decode(), SECRET_KEYS["test"], signature)


async def test_payazas_client_reads_our_fake_and_accepts_its_events(fakes: FakeServers) -> None:
    payaza = judge("payaza")
    client = payaza.Payaza(api_key=PUBLIC_KEYS["test"], sandbox=True)
    client.base_url = fakes.payaza.base_url
    ask = client.virtual_accounts.get_transaction_status_by_merchant_reference
    assert (await to_thread(ask, REFERENCE))["response_code"] == 404
    assert fakes.payaza.open(launch_parameters(_charge())) is None
    assert (await to_thread(ask, REFERENCE))["data"]["transaction_status"] == "Initialized"
    fakes.payaza.pay(REFERENCE)
    told = (await to_thread(ask, REFERENCE))["data"]
    assert (told["transaction_status"], told["amount_received"]) == ("Completed", 1500.5)
    event = fakes.payaza.event(fakes.payaza.book.charges[REFERENCE])
    signature = event.headers[fakes.payaza.header]
    assert judge("payaza.webhooks").verify_signature(event.body, signature, SIGNING["test"])
    assert len(signature) == 88
    refused = payaza.Payaza(api_key="nonsense")
    refused.base_url = fakes.payaza.base_url
    with pytest.raises(payaza.exceptions.PayazaAuthError, match="Authentication failed"):
        await to_thread(refused.virtual_accounts.get_transaction_status_by_merchant_reference, REFERENCE)


async def test_the_vendors_validator_takes_our_launch_parameters_and_no_others() -> None:
    whole = {"customer_email": "ada@example.com", "customer_name": "Ada Obi", "customer_phone": "08012345678"}
    for environment, payer in (
        (Environment.SANDBOX, whole),
        (Environment.LIVE, {"customer_email": "a+b@c.africa", "customer_name": "Ada"}),
        (Environment.LIVE, {}),
    ):
        assert await vendor_validates(launch_parameters(_charge(environment, **payer))) == []
    wrong = json.loads(launch_parameters(_charge())) | {"checkout_amount": "1500.50", "email_address": "a+b@c.africa"}
    troubles = await vendor_validates(json.dumps(wrong).encode())
    assert {trouble["field"] for trouble in troubles} == {"checkout_amount", "email_address"}


async def vendor_validates(parameters: bytes) -> list[dict[str, Any]]:
    """What the vendor's own package finds wrong, run in Node."""
    node_package("payaza-web-sdk")
    command = [program("node"), str(NODE / "validate_launch.js")]
    done = await to_thread(subprocess.run, command, input=parameters, capture_output=True, check=True)
    return list(json.loads(done.stdout))


def _charge(environment: Environment = Environment.SANDBOX, **payer: Any) -> Charge:
    credentials = {"sandboxPublicKey": PUBLIC_KEYS["test"], "livePublicKey": PUBLIC_KEYS["live"]}
    return Charge(REFERENCE, 150_050, "NGN", environment, credentials, "https://pay.example/checkout/x", **payer)
