"""What providers tell of one payment, in every order and with each fact told twice: the same money in the end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import permutations

import pytest
from payagg_testing.builders import HOUR, MINUTE, REFERENCE, SANDBOX, a_report, an_attempt, an_endpoint

from payagg.domain.anomaly import RECONCILIATION
from payagg.domain.attempt import ChargeFacts
from payagg.domain.payment import Status
from payagg.domain.payment_search import PaymentFilter
from payagg.domain.report import REPEATED_FOR, Outcome, ProviderReport
from tests.unit.application.payments.test_settlement import ReportedPayment

AMOUNT, SHORT, PART = 150_000, 75_000, 50_000
FIRST, SECOND = REFERENCE, f"{REFERENCE}.2"  # attempts


@dataclass(frozen=True)
class Fact:
    """A report, and who brings it: an event, a look-up, or the provider's list."""

    report: ProviderReport
    by: str = "event"


def told(
    outcome: Outcome, amount: int = AMOUNT, *, of: str = FIRST, id: str | None = None, by: str = "event", **details: str
) -> Fact:
    facts = ChargeFacts(provider_id=id, received=amount)
    report = a_report(outcome, provider_reference=of, amounts=frozenset({amount}), facts=facts, details=details)
    return Fact(report, by)


def paid(id: str | None = "t1", amount: int = AMOUNT, of: str = FIRST, by: str = "event") -> Fact:
    return told(Outcome.SUCCEEDED, amount, of=of, id=id, by=by)


def reversed_(id: str | None = "t1", of: str = FIRST, amount: int = AMOUNT, **details: str) -> Fact:
    """The status, without an id of what went back unless by the end of a dispute."""
    return told(Outcome.REVERSED, amount, of=of, id=id, by="event" if details else "verify", **details)


def refund(id: str, amount: int = AMOUNT, of: str = FIRST, by: str = "event") -> Fact:
    return told(Outcome.REVERSED, amount, of=of, by=by, refundId=id)


def dispute(state: str, amount: int = AMOUNT, by: str = "event") -> Fact:
    return told(Outcome.DISPUTED, amount, by=by, disputeId="d1", state=state)


DECLINED = told(Outcome.FAILED, id="t0")
# What is told, and the kobo that the merchant has in the end.
STORIES: dict[str, tuple[Sequence[Fact], int]] = {
    "paid, with and without the id": ([paid(), paid(None, by="verify"), paid(by=RECONCILIATION)], AMOUNT),
    "refunded": ([paid(), reversed_(), refund("r1"), refund("r1", by=RECONCILIATION)], 0),
    "refunded in two parts": ([paid(), refund("r1", PART), refund("r2", AMOUNT - PART), reversed_()], 0),
    "refunded in equal halves": ([paid(), refund("r1", SHORT), refund("r2", SHORT), reversed_()], 0),
    "refunded in equal parts": ([paid(), refund("r1", PART), refund("r2", PART)], AMOUNT - 2 * PART),
    "dispute lost": ([paid(), dispute("opened"), reversed_(disputeId="d1", state="lost"), reversed_()], 0),
    "dispute won": ([paid(), dispute("opened"), dispute("won"), refund("r1", PART)], AMOUNT - PART),
    "dispute of a part lost": ([paid(), dispute("opened"), dispute("lost", PART)], AMOUNT - PART),
    "dispute accepted, by a refund": ([paid(), dispute("accepted"), refund("r1"), reversed_()], 0),
    "dispute accepted, by one of two": (
        [paid(), dispute("accepted", PART), refund("r1", PART), refund("r2", PART)],
        AMOUNT - 2 * PART,
    ),
    "a part refunded, the rest disputed": (
        [paid(), refund("r1", PART), dispute("lost", AMOUNT - PART), reversed_()],
        0,
    ),
    "declined, then paid": ([DECLINED, paid(), refund("r1", PART)], AMOUNT - PART),
    "declined, then paid and refunded": ([DECLINED, paid(), reversed_(), refund("r1")], 0),
    "paid twice by one reference": ([paid(), paid("t2"), paid(by="verify")], 2 * AMOUNT),
    "paid twice, one back by its status": ([paid(), paid("t2"), reversed_("t2")], AMOUNT),
    "paid twice, each back by its status": ([paid(), paid("t2"), reversed_("t2"), reversed_()], 0),
    "paid by two attempts": ([paid(), paid("t2", of=SECOND)], 2 * AMOUNT),
    "two attempts, one back": (
        [paid(), paid("t2", of=SECOND), refund("r1", of=SECOND), reversed_("t2", SECOND)],
        AMOUNT,
    ),
    "two attempts, both back": ([paid(), paid("t2", of=SECOND), refund("r1"), refund("r2", of=SECOND)], 0),
    "short": ([paid(amount=SHORT), refund("r1", SHORT), refund("r1", SHORT, by=RECONCILIATION)], 0),
    "short, then right": ([paid(amount=SHORT), paid("t2")], AMOUNT),
}


def orders(facts: Sequence[Fact]) -> Iterator[tuple[Fact, ...]]:
    yield from permutations(facts)
    for again in facts if len(facts) < 4 else ():
        yield from permutations([*facts, again])


async def money(facts: Sequence[Fact], *, is_expired: bool = False, apart: timedelta = MINUTE) -> int:
    """What the merchant has by what he was told, in kobo."""
    world = await ReportedPayment().with_payment(an_endpoint())
    await world.store.transaction.attempts.add(an_attempt(number=2))
    if is_expired:
        world.clock.move(2 * HOUR)
        await world.told(Outcome.FAILED)
    for fact in facts:
        world.clock.move(apart)
        own = [
            one for one in await world.attempts(REFERENCE) if one.provider_reference == fact.report.provider_reference
        ]
        asked = own[0] if fact.by == "verify" else None
        await world.services.settlement.report(fact.report, "provider_a", SANDBOX, fact.by, asked=asked)
    totals = await world.store.transaction.adjustments.totals(PaymentFilter("biz_1", SANDBOX))
    is_paid = (await world.payment(REFERENCE)).status is Status.SUCCESS
    return AMOUNT * is_paid + sum(total.effect for total in totals)


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("story", STORIES)
async def test_the_money_is_the_same_whatever_is_told_first(story: str, is_expired: bool) -> None:
    facts, left = STORIES[story]
    for order in orders(facts):
        assert await money(order, is_expired=is_expired) == left, [(one.by, one.report) for one in order]


@pytest.mark.parametrize("second", [FIRST, SECOND])
@pytest.mark.parametrize(("figure", "proven"), [(SHORT, {SHORT}), (SHORT, set()), (AMOUNT + 1, {AMOUNT + 1})])
@pytest.mark.parametrize("by", ["event", RECONCILIATION])
async def test_what_goes_back_of_another_figure_than_the_payments_takes_nothing_from_what_paid_it(
    second: str, figure: int, proven: set[int], by: str
) -> None:
    """provider_b's event of an underpayment proves no figure, and names what was received alone."""
    wrong, right = paid(amount=figure), paid("t2", of=second)
    wrong = replace(wrong, report=replace(wrong.report, amounts=frozenset(proven)))
    for back in (refund("r1", figure, by=by), dispute("lost", figure, by=by), reversed_(amount=figure)):
        for came in permutations([wrong, right]):
            assert await money([*came, back, back]) == AMOUNT
        after = refund("r2", figure if figure < AMOUNT and second == FIRST else PART, of=second)
        assert await money([wrong, right, back, after]) < AMOUNT, "of what paid it"


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("by", ["event", RECONCILIATION])
async def test_another_charge_that_is_first_seen_when_it_is_back_takes_nothing_from_the_one_that_paid(
    by: str, is_expired: bool
) -> None:
    """By another attempt, or by another transaction of one."""
    for back in (reversed_("t2"), reversed_("t2", SECOND), refund("r1", of=SECOND, by=by)):
        for seen in permutations([paid(), back]):
            for again in ([], [back], [paid("t2", of=back.report.provider_reference)]):
                assert await money([*seen, *again], is_expired=is_expired) == AMOUNT


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("by", ["event", RECONCILIATION])
async def test_a_fee_that_the_payer_bore_is_in_the_parts_of_a_refund_and_counts_for_nothing(
    by: str, is_expired: bool
) -> None:
    came = Fact(replace(paid().report, facts=ChargeFacts("t1", fee=2_250, received=AMOUNT + 2_250)))
    for figures in ((PART, AMOUNT + 2_250 - PART), (AMOUNT, 2_250), (AMOUNT - 1_000, 1_250, 2_000)):
        parts = [refund(f"r{number}", figure, by=by) for number, figure in enumerate(figures)]
        for told in permutations(parts):
            last = told[-1].report
            again = refund(last.details["refundId"] if by == "event" else "event", max(last.amounts))
            assert await money([came, *told, again, reversed_(), again], is_expired=is_expired) == 0, told


@pytest.mark.parametrize("by", ["event", RECONCILIATION])
async def test_a_refund_before_a_dispute_was_opened_is_none_of_the_money_that_is_accepted(by: str) -> None:
    """The event of the refund that the provider makes for it, of the same amount, may be lost. It makes none where
    nothing is left. While events are repeated, their order says nothing."""
    accepted = [dispute("opened", PART), dispute("accepted", PART, by=by)]
    for made in ([], [refund("r2", PART)], [refund("r2", PART), refund("r2", PART)]):
        told = [paid(), refund("r1", PART, by=by), *accepted, *made, *accepted]
        assert await money(told, apart=REPEATED_FOR) == AMOUNT - 2 * PART
    parts = [refund("r1", PART), refund("r2", AMOUNT - 2 * PART), refund("r3", PART)]
    for gone, figure in ([refund("r1")], AMOUNT), (parts, PART):
        told = [paid(), *gone, dispute("opened", figure), dispute("accepted", figure, by=by)]
        assert await money(told, apart=REPEATED_FOR) == 0
    for order in permutations([refund("r1", PART), *accepted]):
        assert await money([paid(), *order]) == AMOUNT - PART
