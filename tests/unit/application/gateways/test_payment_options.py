"""What a payer sees of a payment and may choose, on the memory store."""

import pytest
from payagg_testing.builders import AN_ADMIN, HOUR, LIVE, SANDBOX, SECOND, a_business, a_choice
from payagg_testing.clocks import START

from payagg.application.schemas.payments import TestPayment as DashboardPayment
from payagg.domain.attempt import HandOffKind
from payagg.domain.business import BusinessStatus
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode, must_exist
from payagg.domain.gateway import UnavailableReason
from payagg.domain.health import Health
from payagg.domain.payment import Status
from payagg.domain.report import Outcome
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with

GOOD_CARD, UNKNOWN = "4242 4242 4242 4242", "PAY-20250131-000000"


async def test_a_payer_sees_the_payment_as_it_stands(shop: MemoryShop) -> None:
    reference = await shop.initiated(callback_url="https://shop.example/thanks?a=1")
    seen = await shop.checkout.detail(reference)
    assert (seen.business_name, seen.amount, seen.status) == ("Ada's Shop", 150000, Status.INITIATED)
    page = await shop.checkout.page(reference)
    assert (page.payment, page.settled_at, page.method, seen.expired) == (seen, None, None, False)
    assert [option.slug for option in page.options] == ["provider_a", "provider_b", "sandbox"]
    assert page.redirect_url == f"https://shop.example/thanks?a=1&reference={reference}&status=INITIATED"
    chosen = await shop.handed_over()
    page = await shop.checkout.page(chosen)
    assert (page.options, page.method) == ([], None)
    shop.says(Outcome.SUCCEEDED)
    await shop.verification.verify(chosen)
    page = await shop.checkout.page(chosen)
    assert (page.options, page.method, page.settled_at) == ([], "Provider_A", START)
    shop.clock.move(HOUR)
    assert (await shop.checkout.detail(reference)).expired
    assert (await shop.checkout.page(reference)).options == []


@pytest.mark.rule("checkout.6")
async def test_options_say_why_they_cannot_be_chosen(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    await shop.change("provider_b", credentials=None)
    await shop.store.transaction.health.save(Health("provider_a", SANDBOX, 5, START + SECOND, SECOND))
    await shop.store.transaction.health.save(Health("provider_b", LIVE, 5, START + SECOND, SECOND))
    listed = (await shop.checkout.options(reference)).gateways
    assert [(one.slug, one.available, one.unavailable_reason) for one in listed] == [
        ("builtin", False, UnavailableReason.NOT_CONFIGURED),
        ("provider_a", False, UnavailableReason.UNHEALTHY),
        ("provider_b", False, UnavailableReason.NOT_CONFIGURED),
        ("sandbox", True, None),
    ]
    shop.clock.move(SECOND)
    assert [one.available for one in (await shop.checkout.options(reference)).gateways] == [False, True, False, True]
    offered = (await shop.checkout.page(reference)).options
    assert [one.slug for one in offered] == ["provider_a", "sandbox", "provider_b"]
    await shop.store.transaction.businesses.save(a_business(SHOP, status=BusinessStatus.SUSPENDED))
    listed = (await shop.checkout.options(reference)).gateways
    assert {(one.available, one.unavailable_reason) for one in listed} == {(False, UnavailableReason.DISABLED)}


async def test_options_are_the_businesss_own(shop: MemoryShop) -> None:
    reference = await shop.initiated()
    a, b = await shop.gateway("provider_a"), await shop.gateway("provider_b")
    assert a is not None
    assert b is not None
    await shop.store.transaction.gateway_choices.save(a_choice(a, SHOP, is_enabled=False))
    b = with_changes(b, description="Card or bank transfer")
    await shop.store.transaction.gateways.save(b)
    described = [(one.name, one.description) for one in (await shop.checkout.page(reference)).options]
    assert (b.name, b.description) in described
    await shop.store.transaction.gateway_choices.save(a_choice(b, SHOP, is_default=True, display_name="Cards"))
    offered = (await shop.checkout.page(reference)).options[0]
    assert (offered.name, offered.description) == ("Cards", None), "the page's heading is the merchant's own name"
    listed = (await shop.checkout.options(reference)).gateways
    assert listed[1].description == b.description
    assert [(one.slug, one.name, one.is_default) for one in listed] == [
        ("builtin", "Builtin", False),
        ("provider_b", "Cards", True),
        ("sandbox", "Sandbox simulator", False),
    ]
    for card in ("provider_a", "builtin"):
        assert await refused_with(shop.process(reference, card)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, "gatewaySlug")
    await shop.process(reference, "provider_b")
    shop.says(Outcome.SUCCEEDED)
    await shop.verification.verify(reference)
    assert (await shop.checkout.page(reference)).method == "Cards"
    await shop.store.transaction.gateways.save(b.disable(START).as_of(START + HOUR).delete(START + HOUR))
    assert (await shop.checkout.page(reference)).method == "provider_b"


@pytest.mark.parametrize("blank", ["", "  ", "\u2003", "\u200b\ufeff \u200d"])
async def test_a_blank_name_hides_no_gateway_s_own(shop: MemoryShop, blank: str) -> None:
    reference, b = await shop.initiated(), must_exist(await shop.gateway("provider_b"))
    await shop.store.transaction.gateway_choices.save(a_choice(b, SHOP, display_name=blank))
    names = {one.slug: one.name for one in (await shop.checkout.options(reference)).gateways}
    await shop.process(reference, "provider_b")
    method = await shop.checkout.payment_options.method(await shop.payment(reference))
    assert (names["provider_b"], method) == (b.name, b.name)


async def test_sandbox_alone_prefers_the_simulator_and_a_test_payment_nothing_else(shop: MemoryShop) -> None:
    assert await shop.initiated(SANDBOX, gateway="sandbox")
    assert await refused_with(shop.initiated(LIVE, gateway="sandbox")) == (ErrorCode.GATEWAY_NOT_FOUND, "gateway")
    made = await shop.payments.initiate_test(DashboardPayment(amount=500), a_business(SHOP), by=AN_ADMIN)
    test = made.payment.reference
    assert (await shop.process(test, None, GOOD_CARD)).handoff is HandOffKind.SIMULATOR
    await shop.verification.verify(test)
    assert (await shop.checkout.page(test)).method == "Sandbox simulator"
