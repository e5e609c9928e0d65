"""What verify asks, tells and refuses, on the memory store, also where a provider has lost the slug of its payments."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from payagg_testing.builders import AN_ADMIN, DAY, MINUTE, REFERENCE, SANDBOX, a_payment
from structlog.testing import capture_logs

from payagg.application.payments.verification import redirect_url
from payagg.application.ports.outside import Unavailable
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import VERIFY_EVERY, VERIFY_FINAL_EVERY
from payagg.domain.errors import ErrorCode
from payagg.domain.payment import CHECKOUT_TTL, Status
from payagg.domain.report import FaultKind, Outcome
from payagg.entrypoints.process.server import warn_of_gaps
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with

MISMATCH = (ErrorCode.PAYMENT_AMOUNT_MISMATCH, None)


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.SUCCEEDED, Status.SUCCESS), (Outcome.UNPAID, Status.PENDING)])
async def test_verify_tells_what_the_provider_says(shop: MemoryShop, outcome: Outcome, status: Status) -> None:
    reference = await shop.handed_over(callback_url="https://shop.example/thanks")
    shop.says(outcome)
    told = await shop.verification.verify(reference)
    assert (told.status, told.amount, told.currency, told.last_decline) == (status, 150000, "NGN", None)
    assert told.callback_url == "https://shop.example/thanks"
    assert told.redirect_url == f"https://shop.example/thanks?reference={reference}&status={status.value}"
    assert (await shop.payment(reference)).status is status
    calls = await shop.store.transaction.provider_calls.of_payment(reference)
    told_by = [(one.result, one.word, one.actor) for one in calls if one.operation == "fetch_charge"]
    assert told_by == [(outcome.value, outcome.value.lower(), "verify")]


async def test_who_asks_for_an_hour_causes_a_few_hundred_calls(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.says(Outcome.UNPAID)
    asked, began = [], shop.clock.now()
    while shop.clock.now() < began + CHECKOUT_TTL:
        before = len(shop.a.fetched)
        assert (await shop.verification.verify(reference)).status is Status.PENDING
        asked += [shop.clock.now() - began] * (len(shop.a.fetched) - before)
        shop.clock.move(VERIFY_EVERY)
    assert [at for at in asked if at < 2 * MINUTE] == [n * VERIFY_EVERY for n in range(60)]
    assert 300 < len(asked) < 400
    assert max(later - at for at, later in pairwise(asked)) < MINUTE
    shop.says(Outcome.SUCCEEDED)
    shop.clock.move(MINUTE)
    assert (await shop.verification.verify(reference)).status is Status.SUCCESS
    calls, settled = len(shop.a.fetched), shop.clock.now()
    while shop.clock.now() < settled + 40 * DAY:
        shop.clock.move(VERIFY_FINAL_EVERY)
        await shop.verification.verify(reference)
    assert 200 < len(shop.a.fetched) - calls < 40 * 24 / 3, "nor for ever, once an hour"


@pytest.mark.rule("checkout.9")
async def test_who_joins_a_call_sees_what_was_acknowledged_before(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.a.may_answer, shop.a.fetch_fault = asyncio.Event(), FaultKind.TIMEOUT
    shop.a.called.clear()
    first = asyncio.create_task(shop.verification.verify(reference))
    await shop.a.called.wait()
    await shop.payments.simulate(reference, "SUCCESS", SHOP, by=AN_ADMIN)
    second = asyncio.create_task(shop.verification.verify(reference))
    await asyncio.sleep(0)
    shop.a.may_answer.set()
    assert ((await first).status, (await second).status) == (Status.PENDING, Status.SUCCESS)
    assert len(shop.a.fetched) == 1


@pytest.mark.rule("checkout.9")
async def test_callers_of_one_moment_share_one_call(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.says(Outcome.SUCCEEDED)
    shop.a.may_answer = asyncio.Event()
    shop.a.called.clear()
    callers = [asyncio.create_task(shop.verification.verify(reference)) for _ in range(5)]
    await shop.a.called.wait()
    callers[0].cancel()
    shop.a.may_answer.set()
    assert [(await caller).status for caller in callers[1:]] == [Status.SUCCESS] * 4
    assert (len(shop.a.fetched), shop.verification.verifying) == (1, {})


@pytest.mark.rule("checkout.11", "checkout.12")
async def test_a_difference_moves_nothing_and_stands_until_another_answer(shop: MemoryShop) -> None:
    reference = await shop.handed_over()

    async def verify_twice(*, differs: bool) -> None:
        for _ in range(2):  # the second is answered without asking the provider, and alike
            if differs:
                assert await refused_with(shop.verification.verify(reference)) == MISMATCH
            else:
                assert (await shop.verification.verify(reference)).status is Status.PENDING

    for right_amount in (False, True, False):
        shop.says(Outcome.PENDING if right_amount else Outcome.SUCCEEDED, right_amount=right_amount)
        await verify_twice(differs=not right_amount)
        shop.clock.move(VERIFY_EVERY)
    assert len(shop.a.fetched) == 3
    assert (await shop.payment(reference)).status is Status.PENDING
    assert await shop.anomalies() == [AnomalyKind.MISMATCH]
    shop.a.fetch_fault = FaultKind.TIMEOUT  # takes nothing back
    assert (await shop.verification.verify(reference)).status is Status.PENDING
    await verify_twice(differs=True)


async def test_what_an_event_claimed_is_a_finding_of_verify_once_the_provider_says_it_too(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.says(Outcome.PENDING)
    await shop.verification.verify(reference)
    shop.says(Outcome.SUCCEEDED, right_amount=False)
    wrong = replace(shop.a.says.report(reference, 150000), environment=SANDBOX)
    await shop.services.settlement.report(wrong, "provider_a", SANDBOX, "event:provider_a")
    assert (await shop.verification.verify(reference)).status is Status.PENDING
    shop.clock.move(VERIFY_EVERY)
    for _ in range(2):
        assert await refused_with(shop.verification.verify(reference)) == MISMATCH


@pytest.mark.rule("checkout.10")
async def test_without_an_answer_the_stored_status_stands(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    shop.a.fetch_fault = FaultKind.TIMEOUT
    assert (await shop.verification.verify(reference)).status is Status.PENDING
    shop.clock.move(VERIFY_EVERY)
    await shop.pause(shop.clock.now() + VERIFY_EVERY)
    assert (await shop.verification.verify(reference)).status is Status.PENDING
    assert len(shop.a.fetched) == 1, "a paused provider is not asked"
    await shop.change("provider_a", credentials=None)
    assert await refused_with(shop.verification.verify(reference)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, None)


async def test_a_decline_is_told_until_another_card_is_tried_or_the_window_closes(shop: MemoryShop) -> None:
    reference = await shop.handed_over()

    async def told() -> tuple[Status, str | None]:
        shop.clock.move(VERIFY_EVERY)
        answer = await shop.verification.verify(reference)
        return answer.status, answer.last_decline.value if answer.last_decline else None

    shop.says(Outcome.FAILED, reason="INSUFFICIENT_FUNDS")
    assert await told() == (Status.PENDING, "INSUFFICIENT_FUNDS")
    shop.says(Outcome.FAILED)
    assert await told() == (Status.PENDING, "DECLINED"), "the word where the provider has none"
    shop.a.fetch_fault = FaultKind.TIMEOUT
    assert await told() == (Status.PENDING, "DECLINED")
    shop.a.fetch_fault = None
    shop.says(Outcome.PENDING)
    assert await told() == (Status.PENDING, None)
    shop.clock.move(CHECKOUT_TTL)
    shop.says(Outcome.FAILED)
    assert await told() == (Status.FAILED, None)


@pytest.mark.rule("checkout.13")
def test_the_way_home_carries_reference_and_status() -> None:
    added = f"reference={REFERENCE}&status=INITIATED"
    written = "https://xn--bcher-kva.example/%E1%BB%8Dj%C3%A0"
    leads_to = {
        None: None,
        "https://shop.example": f"https://shop.example?{added}",
        "HTTP://shop.example/a?b=c": f"http://shop.example/a?b=c&{added}",
        "https://shop.example/a#end": f"https://shop.example/a?{added}#end",
        # Of two with one name PHP reads the last, a browser's URLSearchParams the first.
        "https://shop.example/a?reference=7&b=c&status=open&STATUS": f"https://shop.example/a?b=c&STATUS&{added}",
        "https://shop.example/a?status": f"https://shop.example/a?{added}",
        "https://bücher.example/ọjà?x=a|b#ọ": f"{written}?x=a%7Cb&{added}#%E1%BB%8D",
    }
    assert {url: redirect_url(a_payment(callback_url=url)) for url in leads_to} == leads_to


def lose(shop: MemoryShop, slug: str = "provider_a") -> None:
    del shop.services.payment_options.providers[slug]  # type: ignore[attr-defined]


async def warned(shop: MemoryShop) -> list[list[str]]:
    """The gateways named by the warning of a server that starts."""
    with capture_logs() as lines:
        await warn_of_gaps(shop.services)
    return [line["gateways"] for line in lines if "nobody asks" in line["event"]]


async def test_verify_says_so_and_the_charge_is_asked_about_once_the_slug_is_back(shop: MemoryShop) -> None:
    reference = await shop.handed_over()
    before = await shop.attempts(reference)
    lose(shop)
    assert await refused_with(shop.verification.verify(reference)) == (ErrorCode.GATEWAY_NOT_AVAILABLE, None)
    shop.clock.move(2 * MINUTE)
    assert await shop.reconciler.run_once() == 0
    [attempt] = before
    assert await shop.reconciler.oldest_unasked() == attempt.next_ask_at, "the metric and the alert tell"
    assert (await shop.process(reference)).gateway == "provider_a", "the payer may still be at its page"
    assert await shop.attempts(reference) == before
    assert await warned(shop) == [["provider_a"]]
    shop.services.payment_options.providers["provider_a"] = shop.a  # type: ignore[index]
    shop.says(Outcome.SUCCEEDED)
    assert await shop.reconciler.run_once() == 1
    assert (await shop.payment(reference)).status is Status.SUCCESS
    lose(shop)
    assert await warned(shop) == []
    shop.clock.move(120 * MINUTE)
    assert (await shop.verification.verify(reference)).status is Status.SUCCESS


async def test_a_server_starts_though_the_database_is_away(shop: MemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise Unavailable("the database did not answer in time")

    monkeypatch.setattr(shop.store, "begin", gone)
    with capture_logs() as lines:
        await warn_of_gaps(shop.services)
    assert [line["log_level"] for line in lines] == ["warning"]
