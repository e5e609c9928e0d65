"""Lines of a provider beside our payments: whatever comes, nothing is lost, counted twice or told by its place."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payagg.domain.payment import Status
from payagg.domain.reconciliation import (
    NO_FINDING,
    LineKind,
    Match,
    MatchBucket,
    OurPayment,
    ProviderLine,
    match_all,
    totals,
)
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment

REFERENCES = [f"PAY-20250131-00000{number}" for number in range(5)]
A = REFERENCES[0]
SANDBOX, LIVE = Environment.SANDBOX, Environment.LIVE


def a_line(
    outcome: Outcome = Outcome.SUCCEEDED,
    amount: int = 1000,
    reference: str = A,
    kind: LineKind = LineKind.CHARGE,
    id: str = "1",
    environment: Environment | None = None,
) -> ProviderLine:
    report = ProviderReport(reference, outcome, outcome.value, frozenset({amount}), environment=environment)
    return ProviderLine(kind, id, amount, None, report)


def ours(status: Status = Status.SUCCESS, amount: int = 1000, reference: str = A, is_within: bool = True) -> OurPayment:
    return OurPayment(reference, amount, status, LIVE, is_within)


AMOUNTS = st.sampled_from([1000, 1001, 2**53 - 1])
LINES = st.lists(
    st.builds(
        a_line,
        st.sampled_from(Outcome),
        AMOUNTS,
        st.sampled_from([*REFERENCES, A + ".2", "ABC-20250131-00000X", "order 7"]),
        st.sampled_from(LineKind),
        st.sampled_from("123"),
        st.sampled_from([None, SANDBOX, LIVE]),
    ),
    max_size=12,
)
PAYMENTS = st.lists(
    st.builds(ours, st.sampled_from(Status), AMOUNTS, st.sampled_from(REFERENCES), st.booleans()),
    unique_by=lambda payment: payment.reference,
)


@pytest.mark.rule("description.8")
@given(LINES, PAYMENTS)
def test_every_line_payment_and_kobo_is_in_exactly_one_bucket(
    lines: list[ProviderLine], payments: list[OurPayment]
) -> None:
    found = match_all(lines, payments)
    assert Counter(map(id, (line for match in found for line in match.lines))) == Counter(map(id, lines))
    assert sorted(m.payment.reference for m in found if m.payment) == sorted(p.reference for p in payments)
    sums = totals(found).values()
    assert sum(total.theirs for total in sums) == sum(line.amount for line in lines)
    assert sum(total.ours for total in sums) == sum(payment.amount for payment in payments)
    assert sum(total.lines for total in sums) == len(lines)
    assert sum(total.payments for total in sums) == len(payments)
    for match in found:
        # Only what differs is reported, and only what a line says: of two charges at least that they came.
        said = [line.report for line in match.lines]
        if match.bucket is MatchBucket.TWO_THERE:
            said += [replace(report, outcome=Outcome.SUCCEEDED) for report in said]
        assert all(report.is_news and report in said for report in match.reports)
        assert not (match.reports and match.bucket in NO_FINDING)
        assert not (any(line.is_paid for line in match.lines) and match.bucket is MatchBucket.HERE_ONLY)


@given(LINES, PAYMENTS, st.integers())
def test_the_order_of_what_comes_in_decides_nothing(
    lines: list[ProviderLine], payments: list[OurPayment], seed: int
) -> None:
    before = match_all(lines, payments)
    Random(seed).shuffle(lines)
    Random(seed).shuffle(payments)
    assert match_all(lines, payments) == before


SECOND = a_line(reference=A + ".2", id="2")
BACK = a_line(Outcome.REVERSED, kind=LineKind.REFUND)
S, F, R, P, I = Status.SUCCESS, Status.FAILED, Status.REVERSED, Status.PENDING, Status.INITIATED  # noqa: E741


@pytest.mark.parametrize(
    ("status", "lines", "buckets"),
    [
        (S, [a_line()], ["AGREED"]),
        (R, [a_line(Outcome.REVERSED)], ["AGREED"]),
        (F, [a_line(Outcome.FAILED)], ["AGREED"]),
        (I, [], ["AGREED"]),
        (P, [a_line(Outcome.UNPAID)], ["AGREED"]),
        (S, [], ["HERE_ONLY"]),
        (S, [a_line(Outcome.FAILED)], ["HERE_ONLY"]),
        (S, [a_line(amount=999)], ["OTHER_AMOUNT"]),
        (S, [a_line(environment=SANDBOX)], ["OTHER_AMOUNT"]),
        (S, [a_line(Outcome.REVERSED)], ["RETURNED_THERE"]),
        (P, [a_line()], ["PAID_THERE"]),
        (F, [a_line()], ["PAID_THERE"]),
        (S, [a_line(), a_line(id="2")], ["TWO_THERE"]),
        (S, [a_line(), SECOND], ["TWO_THERE"]),
        (R, [a_line(Outcome.REVERSED), BACK], ["AGREED", "AGREED"]),
        (R, [a_line(Outcome.REVERSED), a_line(id="2"), BACK], ["TWO_THERE", "AGREED"]),
        (R, [a_line(Outcome.REVERSED), SECOND, BACK], ["TWO_THERE", "RETURNED_THERE"]),
        (S, [a_line(), a_line(Outcome.UNPAID, reference=A + ".2")], ["AGREED"]),
        (S, [a_line(), a_line(Outcome.REVERSED, 400, kind=LineKind.REFUND)], ["AGREED", "RETURNED_THERE"]),
        (S, [a_line(), a_line(Outcome.DISPUTED, kind=LineKind.DISPUTE)], ["AGREED", "RETURNED_THERE"]),
        (S, [a_line(), a_line(Outcome.PENDING, kind=LineKind.REFUND)], ["AGREED", "AGREED"]),
    ],
)
def test_each_difference_has_its_bucket(status: Status, lines: list[ProviderLine], buckets: list[str]) -> None:
    assert [match.bucket.value for match in match_all(lines, [ours(status)])] == buckets


def test_a_charge_that_stands_is_told_before_one_that_was_reversed() -> None:
    """An open payment ends as the first that it is told of says."""
    for reversed_id, paid_id in ("12", "21"):
        lines = [a_line(Outcome.REVERSED, id=reversed_id), a_line(id=paid_id)]
        (match,) = match_all(lines, [ours(P)])
        assert [report.outcome for report in match.reports] == [Outcome.SUCCEEDED, Outcome.REVERSED]


def test_money_without_a_payment_is_there_only_and_other_references_are_foreign() -> None:
    lines = [a_line(), a_line(Outcome.UNPAID, reference=REFERENCES[1]), a_line(reference="order 7")]
    lines.append(a_line(reference="CEL-20250131-000001"))
    matches = match_all(lines, [], {"CEL"})
    found = {line.report.provider_reference: match.bucket.value for match in matches for line in match.lines}
    ours = {A: "THERE_ONLY", REFERENCES[1]: "AGREED"}
    assert found == {**ours, "order 7": "FOREIGN", "CEL-20250131-000001": "FOREIGN"}


def test_a_reversed_charge_with_its_refund_is_reported_once_and_agreement_never() -> None:
    refund = a_line(Outcome.REVERSED, kind=LineKind.REFUND)
    assert match_all([a_line()], [ours()]) == [Match(MatchBucket.AGREED, ours(), (a_line(),))], "agreement is no news"
    assert [match.bucket for match in match_all([], [ours(is_within=False)])] == [MatchBucket.AGREED]
    found = match_all([a_line(Outcome.REVERSED), refund], [ours()])
    assert [match.bucket for match in found] == [MatchBucket.RETURNED_THERE] * 2
    assert [report for match in found for report in match.reports] == [refund.report]
