"""The rule of money as a function, where test_report_product.py does not say it all; test_settlement.py has the use
case."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from payagg_testing.builders import HOUR, NOW, REFERENCE, a_payment, a_report, an_attempt

from payagg.domain.adjustment import amount_of, money_back
from payagg.domain.anomaly import RECONCILIATION, Anomaly, AnomalyKind
from payagg.domain.attempt import AttemptState, ChargeFacts, provider_reference
from payagg.domain.payment import EXPIRED_REASON, Payment, Status, Trigger
from payagg.domain.report import Outcome, ReportEffect, Verdict, judge, judge_silence
from payagg.domain.values import Environment

SUCCEEDED, FAILED, REVERSED = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED


def pending() -> Payment:
    return a_payment().hand_over("provider_a", NOW, "payer")[0]


def ended(trigger: Trigger, reason: str | None = None) -> Payment:
    return pending().move(trigger, NOW, actor="test", reason=reason)[0]


PAID = ended(Trigger.SUCCEED, REFERENCE)
BACK = ended(Trigger.REVERSE)
OTHER_AMOUNT = frozenset({1})
ASKED = an_attempt(pending(), 1, AttemptState.HANDED_OFF)
SECOND = an_attempt(pending(), 2, AttemptState.HANDED_OFF)
GIVEN = Anomaly("anm_1", REFERENCE, AnomalyKind.PARTIAL_REFUND, "verify", {"amounts": [50_000]}, NOW)
DISPUTED = a_report(Outcome.DISPUTED, details={"disputeId": "d1", "state": "lost"})
OPENED = replace(GIVEN, kind=AnomalyKind.DISPUTE, details={"disputeId": "d1", "state": "opened"})


def judged(report: Any, payment: Payment | None, **differs: Any) -> Verdict:
    handed_off = an_attempt(payment or a_payment(), 1, AttemptState.HANDED_OFF)
    plain: dict[str, Any] = {
        "attempts": [handed_off],
        "gateway": "provider_a",
        "environment": Environment.SANDBOX,
        "asked": None,
        "paid": [],
        "actor": "event:provider_a",
        "now": NOW,
    }
    return judge(report, payment, **{**plain, **differs})


def test_a_refund_without_an_id_sent_again_in_other_bytes_gives_back_no_more() -> None:
    again = a_report(REVERSED, details={"eventDigest": "0b"})
    # Two transactions may have one reference, and then twice as much came.
    twice = replace(GIVEN, kind=AnomalyKind.SECOND_CHARGE, details={"providerId": "t2"})
    for back, effect in ((PAID.amount, ReportEffect.UNCHANGED), (50_000, ReportEffect.ANOMALY)):
        known = replace(GIVEN, details={"amounts": [back], "eventDigest": "0a"})
        assert judged(again, PAID, known=[known]).effect is effect
        assert judged(again, PAID, known=[known, twice]).effect is ReportEffect.ANOMALY


@pytest.mark.parametrize("details", [{"refundId": "1"}, {"eventDigest": "0b"}])
def test_of_two_transactions_under_one_reference_a_status_alone_hides_the_refund_of_none(
    details: dict[str, Any],
) -> None:
    """The first refund with an id is what the status told; the next is the other transaction's money."""
    twice = replace(GIVEN, kind=AnomalyKind.SECOND_CHARGE, details={"providerId": "t2"})
    by_status = replace(GIVEN, kind=AnomalyKind.LATE_REVERSAL, details=a_report(REVERSED).evidence())
    first, other = a_report(REVERSED, details=details), a_report(REVERSED, details={"refundId": "2"})
    lost = replace(DISPUTED, amounts=first.amounts)
    for second in (other, lost):
        known, backs = [twice, by_status], []
        for report in (first, second, first):
            verdict = judged(report, PAID, known=known)
            if verdict.anomaly is not None:  # as it is stored, once
                known = [fact for fact in known if fact.details != verdict.details]
                known.append(replace(GIVEN, id=f"anm_{len(known)}", kind=verdict.anomaly, details=verdict.details))
            backs.append(money_back(known, PAID.amount).kobo)
        assert backs == [PAID.amount, 2 * PAID.amount, 2 * PAID.amount]
        assert judged(replace(other, details={"eventDigest": "0c"}), PAID, known=known).effect is ReportEffect.UNCHANGED
    # A provider's list has each refund as a line, of which one is matched with what the status told.
    by_list = judged(other, PAID, known=[twice, by_status], actor=RECONCILIATION)
    assert by_list.details == other.evidence()


@pytest.mark.parametrize("details", [{"refundId": "2"}, {"eventDigest": "0b"}, DISPUTED.details])
def test_a_refund_that_comes_when_the_event_of_what_a_status_told_is_repeated_no_more_is_another(
    details: dict[str, Any],
) -> None:
    twice = replace(GIVEN, kind=AnomalyKind.SECOND_CHARGE, details={"providerId": "t2"})
    by_status = replace(GIVEN, kind=AnomalyKind.LATE_REVERSAL, details=a_report(REVERSED).evidence())
    for payment, late, known, gone in (
        (PAID, timedelta(microseconds=-1), [twice, by_status], 0),
        (PAID, timedelta(), [twice, by_status], PAID.amount),
        (BACK, -72 * HOUR, [twice], PAID.amount),  # whose refund had an event, which moved it
    ):
        verdict = judged(a_report(REVERSED, details=details), payment, known=known, now=NOW + 72 * HOUR + late)
        assert amount_of(verdict.details, PAID.amount) == gone


def test_a_second_transaction_is_one_charge_whatever_figures_tell_of_it() -> None:
    """An event has the fee, and so two figures; a statement may lack its column, and has one."""
    first = replace(ASKED, provider_id="t1")
    again = a_report(SUCCEEDED, amounts=frozenset({150_000, 147_750}), facts=ChargeFacts(provider_id="t2", channel="x"))
    told = judged(again, PAID, attempts=[first], paid=[REFERENCE])
    assert told.anomaly is AnomalyKind.SECOND_CHARGE
    known = [replace(GIVEN, kind=told.anomaly, details=told.details)]
    assert judged(
        replace(again, amounts=frozenset({150_000})), PAID, attempts=[first], paid=[REFERENCE], known=known
    ) == (Verdict(ReportEffect.UNCHANGED))
    third = replace(again, facts=ChargeFacts(provider_id="t3"))
    assert judged(third, PAID, attempts=[first], paid=[REFERENCE], known=known).anomaly is AnomalyKind.SECOND_CHARGE


def test_what_went_back_of_a_second_transaction_came_first_and_takes_nothing_from_the_first() -> None:
    """Its success was never told: a provider's list, or a look-up by the reference, shows it as reversed at once."""
    first = replace(ASKED, provider_id="t1")
    again = replace(GIVEN, kind=AnomalyKind.SECOND_CHARGE, details={"providerId": "t2"})
    for transaction, known, kind in (
        ("t2", [], AnomalyKind.SECOND_CHARGE),
        ("t2", [again], AnomalyKind.LATE_REVERSAL),
        ("t1", [], AnomalyKind.LATE_REVERSAL),
        (None, [], AnomalyKind.LATE_REVERSAL),
    ):
        report = a_report(REVERSED, facts=ChargeFacts(provider_id=transaction))
        assert judged(report, PAID, attempts=[first], known=known).anomaly is kind
        resolved = judged(replace(report, details=DISPUTED.details), PAID, attempts=[first], known=known)
        assert resolved.anomaly is (AnomalyKind.DISPUTE if kind is AnomalyKind.LATE_REVERSAL else kind)


def test_a_declined_try_beside_the_one_that_paid_says_nothing_about_it() -> None:
    first = replace(ASKED, provider_id="t1")
    for transaction, kind in (("t1", AnomalyKind.LATE_FAILURE), (None, AnomalyKind.LATE_FAILURE), ("t2", None)):
        declined = a_report(FAILED, facts=ChargeFacts(provider_id=transaction))
        assert judged(declined, PAID, attempts=[first], paid=[REFERENCE]).anomaly is kind
    elsewhere = judged(a_report(FAILED), PAID, attempts=[first, SECOND], paid=[SECOND.provider_reference])
    assert elsewhere.effect is ReportEffect.UNCHANGED


def test_the_end_of_a_dispute_without_an_id_sent_again_is_the_same_fact() -> None:
    nameless = replace(DISPUTED, details={"disputeId": "", "state": "accepted"})
    for known in ([], [replace(GIVEN, kind=AnomalyKind.LATE_REVERSAL)]):  # a status told of a part before
        first = judged(nameless, PAID, known=known)
        fact = replace(GIVEN, id="anm_2", kind=AnomalyKind.DISPUTE, details=first.details)
        again = judged(nameless, PAID, known=[fact, *known])
        assert (again.anomaly, again.details) == (AnomalyKind.DISPUTE, first.details)
    ended_it = a_report(REVERSED, details=DISPUTED.details)
    assert judged(ended_it, BACK, paid=[REFERENCE]) == Verdict(ReportEffect.UNCHANGED), "its payment's status says so"


@pytest.mark.parametrize("figure", [PAID.amount, 50_000], ids=["whole", "part"])
@pytest.mark.parametrize("refund_first", [False, True])
def test_a_dispute_that_was_accepted_and_the_refund_made_for_it_are_the_same_money(
    figure: int, refund_first: bool
) -> None:
    """Paystack's list names the dispute of a refund, its event does not."""
    amounts, known = frozenset({figure}), [OPENED]
    refund = a_report(REVERSED, amounts=amounts, details={"refundId": "r1"})
    accepted = a_report(Outcome.DISPUTED, amounts=amounts, details={"disputeId": "d1", "state": "accepted"})
    reports = [refund, accepted] if refund_first else [accepted, refund]
    for report in [*reports, *reports]:
        verdict = judged(report, PAID, known=known)
        assert verdict.anomaly is not None, "both are kept, and told"
        if not any(fact.is_same_fact(verdict.anomaly, verdict.details) for fact in known):
            known.append(replace(GIVEN, id=f"anm_{len(known)}", kind=verdict.anomaly, details=verdict.details))
        assert money_back(known, PAID.amount).kobo == figure
    assert len(known) == 3
    another = replace(refund, details={"refundId": "r2"})
    for actor, of in (("event:provider_a", [*known]), (RECONCILIATION, known[:2])):
        assert "amount" not in judged(another, PAID, known=of, actor=actor).details, "one dispute hides one refund"
    listed = [replace(fact, source=RECONCILIATION) for fact in known if fact.kind is not AnomalyKind.DISPUTE]
    assert "amount" not in judged(accepted, PAID, known=listed).details, "a list's refund is for no dispute"


@pytest.mark.parametrize("fee", [2_250, 2_000, None], ids=["told", "told otherwise", "never told"])
def test_what_the_payer_paid_with_a_fee_on_top_is_given_back_whole(fee: int | None) -> None:
    paid = PAID.with_fee(fee, PAID.amount + (fee or 0))
    all_of_it = frozenset({PAID.amount + 2_250})
    refund = judged(a_report(REVERSED, amounts=all_of_it, details={"refundId": "1"}), paid)
    assert (refund.effect, refund.anomaly) == (ReportEffect.ANOMALY, AnomalyKind.LATE_REVERSAL)
    lost = judged(replace(DISPUTED, amounts=all_of_it), paid)
    for kind, verdict in ((AnomalyKind.LATE_REVERSAL, refund), (AnomalyKind.DISPUTE, lost)):
        fact = replace(GIVEN, kind=kind, details=verdict.details)
        assert money_back([fact], PAID.amount).kobo == PAID.amount
    failed = ended(Trigger.FAIL)
    late = judged(a_report(SUCCEEDED, facts=ChargeFacts(fee=fee, received=PAID.amount + (fee or 0))), failed)
    known = [replace(GIVEN, kind=AnomalyKind.LATE_SUCCESS, details=late.details)]
    refund = judged(a_report(REVERSED, amounts=all_of_it, details={"refundId": "1"}), failed, known=known)
    assert (refund.anomaly, amount_of(refund.details, PAID.amount)) == (AnomalyKind.LATE_REVERSAL, PAID.amount)


def test_a_refund_with_a_fee_on_top_that_comes_before_its_payment_s_success_is_kept_and_moves_nothing() -> None:
    refund = a_report(REVERSED, amounts=frozenset({PAID.amount + 2_250}), details={"refundId": "1"})
    verdict = judged(refund, pending())
    assert (verdict.changes, verdict.anomaly) == ((), AnomalyKind.LATE_REVERSAL)
    fact = replace(GIVEN, kind=AnomalyKind.LATE_REVERSAL, details=verdict.details)
    assert money_back([fact], PAID.amount).kobo == PAID.amount
    assert judged(a_report(SUCCEEDED), pending(), known=[fact]).effect is ReportEffect.MOVED
    assert judged(refund, PAID, known=[fact]).details == verdict.details  # the same fact, which is stored once
    assert judged(refund, pending(), asked=ASKED).effect is ReportEffect.MISMATCH  # verify says so


@pytest.mark.rule("description.4")
def test_a_decline_found_by_asking_is_no_end_while_the_page_may_take_another_card() -> None:
    payment = pending()
    last_instant = payment.expires_at - timedelta(microseconds=1)
    verdict = judged(a_report(FAILED, reason="EXPIRED_CARD"), payment, asked=ASKED, now=last_instant)
    assert (verdict.effect, verdict.changes) == (ReportEffect.DECLINED, ())
    assert verdict.attempt == replace(ASKED, last_decline="EXPIRED_CARD")
    over = judged(a_report(FAILED, reason="EXPIRED_CARD"), payment, asked=ASKED, now=payment.expires_at)
    assert [moved.status for moved, _ in over.changes] == [Status.FAILED]


def test_a_decline_is_forgotten_when_the_payer_is_at_the_same_attempt_again() -> None:
    declined, second = replace(ASKED, last_decline="DECLINED"), an_attempt(pending(), 2, AttemptState.HANDED_OFF)
    report = a_report(Outcome.PENDING, provider_reference=f"{REFERENCE[:3]}{REFERENCE[3:]}")  # equal, not the same
    verdict = judged(report, pending(), attempts=[declined], asked=declined)
    assert (verdict.effect, verdict.attempt) == (ReportEffect.UNCHANGED, ASKED)
    report = a_report(Outcome.PENDING, provider_reference=second.provider_reference)
    verdict = judged(report, pending(), attempts=[declined, second], asked=second)
    assert (verdict.effect, verdict.attempt) == (ReportEffect.UNCHANGED, None)


def test_news_of_another_attempt_is_looked_at_and_a_success_names_the_charge_that_was_paid() -> None:
    for told, asked in product((1, 2), repeat=2):
        report = a_report(Outcome.PENDING, provider_reference=provider_reference(REFERENCE, told))
        assert report.changes_nothing(an_attempt(pending(), asked)) is (told == asked)
    ((payment, transition),) = judged(a_report(SUCCEEDED), pending()).changes
    assert transition is not None
    assert (payment.status, payment.gateway, transition.reason) == (Status.SUCCESS, "provider_a", REFERENCE)


def test_money_after_the_window_of_an_unprocessed_payment_expires_it_first() -> None:
    verdict = judged(a_report(SUCCEEDED), a_payment(), now=NOW + HOUR)
    ((payment, _),) = verdict.changes
    assert (payment.status, payment.failure_reason) == (Status.FAILED, EXPIRED_REASON)
    assert verdict.anomaly is AnomalyKind.LATE_SUCCESS


def test_the_end_of_the_asking() -> None:
    attempt = an_attempt(pending(), 1, AttemptState.HANDED_OFF)
    nothing = ReportEffect.ANOMALY, AnomalyKind.NO_EVIDENCE
    for outcome, told in ((Outcome.UNPAID, (ReportEffect.MOVED, None)), (Outcome.PENDING, nothing), (None, nothing)):
        report = a_report(outcome) if outcome else None
        end = partial(judge_silence, report, attempt=attempt, actor="reconciler", now=NOW)
        verdict = end(payment=pending())
        assert (verdict.effect, verdict.anomaly) == told
        for payment in (a_payment(), PAID):
            assert end(payment=payment) == Verdict(ReportEffect.UNCHANGED)
    short = a_report(SUCCEEDED, amounts=OTHER_AMOUNT)  # told as what it is
    assert judge_silence(short, pending(), attempt, actor="r", now=NOW) == Verdict(ReportEffect.UNCHANGED)
    other = replace(short, currency="USD", outcome=FAILED)
    assert judge_silence(other, pending(), attempt, actor="r", now=NOW).anomaly is AnomalyKind.NO_EVIDENCE
