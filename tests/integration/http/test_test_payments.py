"""Dashboard test payments: the same use case as initiate, always SANDBOX and served by the simulator."""

import pytest

from payagg.application.explain import timeline
from payagg.domain.business import KycStatus
from payagg.domain.values import Environment
from tests.support.http_world import Api, assert_refused

pytestmark = pytest.mark.anyio


@pytest.mark.rule(
    "POST /merchant/businesses/{businessId}/test-payment",
    "GET /merchant/businesses/{businessId}/test-payment/{reference}",
    "POST /merchant/businesses/{businessId}/test-payment/{reference}/simulate",
)
async def test_a_test_payment_from_creation_to_a_reversal(api: Api) -> None:
    shop = await api.open_shop(kyc=KycStatus.NOT_SUBMITTED)
    path = f"{shop.path}/test-payment"
    created = await api.client.post(path, json={"amount": 5000, "idempotencyKey": "t"}, headers=shop.as_owner)
    assert created.status_code == 201, created.text
    assert created.json()["data"]["environment"] == "SANDBOX"
    replay = await api.client.post(path, json={"amount": 5000}, headers=shop.as_owner | {"Idempotency-Key": "t"})
    assert (replay.status_code, replay.headers["idempotency-replayed"]) == (200, "true")
    assert replay.json() == created.json()
    reference = created.json()["data"]["reference"]
    read = await api.client.get(f"{path}/{reference}", headers=shop.as_owner)
    assert (read.json()["data"]["gateway"], read.json()["data"]["status"]) == ("sandbox", "INITIATED")
    assert (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).json() == read.json()
    done = await api.client.post(f"{path}/{reference}/simulate", json={"outcome": "Reversed"}, headers=shop.as_owner)
    assert done.json()["data"]["status"] == "REVERSED"
    again = await api.client.post(f"{path}/{reference}/simulate", json={"outcome": "SUCCESS"}, headers=shop.as_owner)
    assert_refused(again, 409, "PAYMENT_ALREADY_FINAL")
    closed = await api.client.post(path, json={"amount": 5000, "idempotencyKey": "t"}, headers=shop.as_owner)
    assert_refused(closed, 409, "DUPLICATE_PAYMENT")


@pytest.mark.rule("NO_SANDBOX_KEY")
async def test_without_an_active_sandbox_key_there_is_no_test_payment(api: Api) -> None:
    shop = await api.open_shop(keys=(Environment.LIVE,))
    answer = await api.client.post(f"{shop.path}/test-payment", json={"amount": 5000}, headers=shop.as_owner)
    assert_refused(answer, 400, "NO_SANDBOX_KEY")
    invalid = await api.client.post(f"{shop.path}/test-payment", json={"amount": 1}, headers=shop.as_owner)
    assert_refused(invalid, 400, "VALIDATION_ERROR", "amount")


async def test_a_test_payment_cannot_reach_live_or_other_businesses(api: Api) -> None:
    await api.open_gateways()
    shop, other = await api.open_shop(), await api.open_shop()
    live = (await api.initiate(shop, shop.as_live))["reference"]
    theirs = (await api.initiate(other))["reference"]
    for reference in (live, theirs, live[:-6] + "ZZZZZZ"):
        path = f"{shop.path}/test-payment/{reference}"
        assert_refused(await api.client.get(path, headers=shop.as_owner), 404, "PAYMENT_NOT_FOUND")
        simulated = await api.client.post(f"{path}/simulate", json={"outcome": "SUCCESS"}, headers=shop.as_owner)
        assert_refused(simulated, 404, "PAYMENT_NOT_FOUND")
    untouched = await api.client.get(f"/payments/{live}", headers=shop.as_live)
    assert untouched.json()["data"]["status"] == "INITIATED"


@pytest.mark.rule("payments.25")
async def test_fields_that_a_caller_may_not_choose_are_ignored(api: Api) -> None:
    shop = await api.open_shop()
    extra = {"environment": "LIVE", "gateway": "provider_a", "status": "SUCCESS", "webhookUrl": "nonsense"}
    created = await api.client.post(f"{shop.path}/test-payment", json={"amount": 100, **extra}, headers=shop.as_owner)
    reference = created.json()["data"]["reference"]
    read = (await api.client.get(f"/payments/{reference}", headers=shop.as_sandbox)).json()["data"]
    assert (read["environment"], read["gateway"], read["status"]) == ("SANDBOX", "sandbox", "INITIATED")


@pytest.mark.rule("payments.26")
async def test_a_test_payment_is_served_by_the_simulator_alone(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    created = await api.client.post(f"{shop.path}/test-payment", json={"amount": 5000}, headers=shop.as_owner)
    public = f"/public/payments/{created.json()['data']['reference']}"
    options = (await api.client.get(f"{public}/gateways")).json()["data"]["gateways"]
    assert [(option["slug"], option["available"]) for option in options] == [("sandbox", True)]
    for slug in ("provider_a", "provider_b", "builtin"):
        refused = await api.client.post(f"{public}/process", json={"gatewaySlug": slug})
        assert_refused(refused, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug")
    card = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
    assert (await api.client.post(f"{public}/process", json=card)).json()["data"]["handoff"] == "SIMULATOR"
    assert (await api.client.get(f"{public}/verify")).json()["data"]["status"] == "SUCCESS"
    story = await timeline(api.services.store, created.json()["data"]["reference"])
    assert any("SANDBOX, a test payment" in line for line in story)


async def test_a_sandbox_payment_of_the_api_keeps_its_other_options(api: Api) -> None:
    await api.open_gateways()
    shop = await api.open_shop()
    reference = (await api.initiate(shop, gateway="sandbox"))["reference"]
    options = (await api.client.get(f"/public/payments/{reference}/gateways")).json()["data"]["gateways"]
    assert [option["slug"] for option in options] == ["builtin", "provider_a", "sandbox"]
