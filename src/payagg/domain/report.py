"""What providers report of a charge, and what a report does to its payment: `judge` is the rule of money.

Nothing but an exact match of provider, environment, reference, currency and amount moves a payment; every other
statement about money is kept as an anomaly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from payagg.domain.adjustment import (
    ACCEPTED,
    KIND_FOR,
    LOST,
    AdjustmentKind,
    MoneyBack,
    adjustments_of,
    figure_of,
    is_named,
    money_back,
    shares_name,
)
from payagg.domain.anomaly import RECONCILIATION, Anomaly, AnomalyKind
from payagg.domain.attempt import NO_FACTS, Attempt, ChargeFacts, HandOffKind, payment_reference
from payagg.domain.checks import check_member, check_text, with_changes
from payagg.domain.errors import invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import (
    DECLINED,
    EXPIRED_REASON,
    REASON_MAX,
    SIMULATED,
    Payment,
    Status,
    Transition,
    Trigger,
)
from payagg.domain.values import CURRENCY, Environment


class Outcome(Enum):
    """What a provider's word means for us. Unknown words mean PENDING: only evidence moves money."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    REVERSED = "REVERSED"
    PENDING = "PENDING"
    DISPUTED = "DISPUTED"  # the payer asks the bank for the money back; nothing has moved yet
    UNPAID = "UNPAID"  # the provider has no payment: evidence, used only to expire or to start anew


REPEATED_FOR = timedelta(hours=72)  # how long a provider repeats an event until it is acknowledged
NO_CHARGE = "not found"  # the word of a report that the provider has no such charge: UNPAID, and nobody was sent there

TRIGGER_FOR = {
    Outcome.SUCCEEDED: Trigger.SUCCEED,
    Outcome.FAILED: Trigger.FAIL,
    Outcome.REVERSED: Trigger.REVERSE,
}


@dataclass(frozen=True)
class ProviderReport:
    """A provider's statement about one charge, from an event or an answer, in our words.

    `amounts` holds every kobo figure that proves payment in full (a fee on top makes more than one honest figure);
    `environment` is None where the provider's body does not carry it and the path or secret decided. Any figure and any
    reference may be reported; what is of another kind raises VALIDATION_ERROR.
    """

    provider_reference: str
    outcome: Outcome
    word: str  # the provider's own status word
    amounts: frozenset[int] = frozenset()
    currency: str = CURRENCY
    environment: Environment | None = None
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    is_known_status: bool = True  # whether the adapter's table has the word; one that it lacks is PENDING
    facts: ChargeFacts = NO_FACTS
    account: str | None = None  # fingerprint of the account that answered; None for an event

    def __post_init__(self) -> None:
        check_text(self.provider_reference, "providerReference", REASON_MAX)
        check_text(self.word, "word", REASON_MAX)
        check_member(self.outcome, "outcome", Outcome)
        if not isinstance(self.amounts, frozenset) or not all(type(amount) is int for amount in self.amounts):
            raise invalid("amounts", "Must be a set of integers.")
        check_text(self.currency, "currency", REASON_MAX)
        if self.environment is not None:
            check_member(self.environment, "environment", Environment)
        if self.reason is not None:
            check_text(self.reason, "reason", REASON_MAX)

    def mismatch(self, payment: Payment) -> str | None:
        """Which fact differs from the payment ('reference', 'environment', 'currency', 'amount'), or None.

        Whoever says that money moved must name its currency and amount; a failure may leave them out, or say that
        nothing came.
        """
        if payment_reference(self.provider_reference) != payment.reference:
            return "reference"
        if self.environment is not None and self.environment is not payment.environment:
            return "environment"
        if self.trigger is None:
            return None
        may_omit = self.outcome is Outcome.FAILED
        if self.currency != payment.currency and (self.currency or not may_omit):
            return "currency"
        if payment.amount not in self.amounts and (any(self.amounts) or not may_omit):
            return "amount"
        return None

    def is_back_with_fee(self, payment: Payment) -> bool:
        """Whether it is of money back that is more than the payment: all of it, with a fee that the payer bore, which
        not every report names."""
        is_back = self.outcome in (Outcome.REVERSED, Outcome.DISPUTED)
        return is_back and min(self.amounts, default=0) > payment.amount

    @property
    def is_of_a_charge(self) -> bool:
        """Whether the provider has the charge, paid or not."""
        return (self.outcome, self.word) != (Outcome.UNPAID, NO_CHARGE)

    @property
    def is_news(self) -> bool:
        """Whether it says something about money that must not be lost."""
        return self.trigger is not None or self.outcome is Outcome.DISPUTED

    def changes_nothing(self, asked: Attempt) -> bool:
        """Whether, as the answer about this attempt, it leaves everything as it is: the payer is still at it."""
        is_about_it = self.provider_reference == asked.provider_reference
        return is_about_it and self.is_known_status and not self.is_news and asked.last_decline is None

    @property
    def trigger(self) -> Trigger | None:
        """What it asks of the machine; None for a report that is no evidence of an end."""
        return TRIGGER_FOR.get(self.outcome)

    def evidence(self, **more: Any) -> Mapping[str, Any]:
        """Its facts as an anomaly keeps them."""
        return {
            "providerReference": self.provider_reference,
            "word": self.word,
            "amounts": sorted(self.amounts),
            "currency": self.currency,
            **self.details,
            **more,
        }

    def is_partial_refund(self, payment: Payment) -> bool:
        """Whether it is a reversal of less than the payment, which stays paid."""
        return self.outcome is Outcome.REVERSED and bool(self.amounts) and max(self.amounts) < payment.amount

    def may_be_paid_there(self, asked: Attempt) -> bool:
        """Whether, as the answer about this attempt, another charge beside it could be paid too: it is in doubt, and
        its payer is at it, or another account answered."""
        is_no_end = self.outcome is Outcome.PENDING or asked.is_of_other_account(self.account)
        return asked.is_in_doubt and is_no_end

    def proves_unpaid(self, payment: Payment, attempt: Attempt) -> bool:
        """Whether it is evidence that nothing was paid, about this very attempt and in its environment.

        Not from another account, which has no such charge. Nor is "no such charge" where the provider gave us
        a page for it: it had the charge.
        """
        is_about_it = self.provider_reference == attempt.provider_reference and self.mismatch(payment) is None
        had_page = attempt.hand_off is not None and attempt.hand_off.kind is HandOffKind.REDIRECT
        is_believed = (self.is_of_a_charge or not had_page) and not attempt.is_of_other_account(self.account)
        return self.outcome is Outcome.UNPAID and is_about_it and is_believed


class FaultKind(Enum):
    """Why a provider call gave no usable answer. `is_certain` = we know that no charge was made."""

    TIMEOUT = "TIMEOUT"
    UNREACHABLE = "UNREACHABLE"
    MALFORMED = "MALFORMED"
    SERVER_ERROR = "SERVER_ERROR"
    RATE_LIMITED = "RATE_LIMITED"
    BAD_CREDENTIALS = "BAD_CREDENTIALS"
    REJECTED = "REJECTED"
    DUPLICATE = "DUPLICATE"  # the reference exists there already: an earlier call arrived after all

    @property
    def is_certain(self) -> bool:
        return self in (FaultKind.BAD_CREDENTIALS, FaultKind.REJECTED, FaultKind.RATE_LIMITED)

    @property
    def is_unhealthy(self) -> bool:
        """Whether it counts against the provider's health rather than against the request. A provider that asks for
        less is there: were 429 a fault, one merchant's volume would pause it for all."""
        return self not in (FaultKind.REJECTED, FaultKind.DUPLICATE, FaultKind.RATE_LIMITED)


class ProviderFault(Exception):
    """Raised by provider adapters alone; the message carries no secret and no personal data. One that was not sent says
    nothing about the provider's health."""

    def __init__(self, kind: FaultKind, message: str = "", *, is_sent: bool = True) -> None:
        super().__init__(f"{kind.value}: {message}" if message else kind.value)
        self.kind = kind
        self.is_sent = is_sent


LATE_FOR = {
    Trigger.SUCCEED: AnomalyKind.LATE_SUCCESS,
    Trigger.FAIL: AnomalyKind.LATE_FAILURE,
}


class ReportEffect(Enum):
    """What a provider's report did."""

    MOVED = "MOVED"
    UNCHANGED = "UNCHANGED"
    DECLINED = "DECLINED"  # a card; the page it was tried on may take another
    ANOMALY = "ANOMALY"
    MISMATCH = "MISMATCH"
    UNKNOWN_PAYMENT = "UNKNOWN_PAYMENT"


@dataclass(frozen=True)
class Verdict:
    """What to store: `changes` in order, the attempt, the anomaly with its details, and the fee when it arrived after
    the payment was final."""

    effect: ReportEffect
    changes: tuple[tuple[Payment, Transition | None], ...] = ()
    attempt: Attempt | None = None
    anomaly: AnomalyKind | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    facts: ChargeFacts | None = None


_UNCHANGED = Verdict(ReportEffect.UNCHANGED)


def judge(
    report: ProviderReport,
    payment: Payment | None,
    attempts: Sequence[Attempt],
    *,
    gateway: str,
    environment: Environment,
    asked: Attempt | None,
    paid: Sequence[str | None],
    actor: str,
    now: datetime,
    known: Sequence[Anomaly] = (),
) -> Verdict:
    """The effect of a report from `gateway` in `environment` on the stored payment.

    `asked` is the attempt whose look-up brought the report, None for an event. `paid` holds the reasons of the
    payment's transitions to SUCCESS or REVERSED: each names the charge that was paid. `known` are the payment's
    anomalies.
    """
    if payment is None:
        anomaly = AnomalyKind.UNKNOWN_REFERENCE if report.is_news else None
        return Verdict(ReportEffect.UNKNOWN_PAYMENT, anomaly=anomaly, details=report.evidence())
    # An answer about another reference than the one asked for must not move that other payment.
    if asked is not None and report.provider_reference != asked.provider_reference:
        return _mismatch(report, payment, "reference")
    # Another account's "no such charge", or a failed one, is no evidence about ours. Its report of ours, with every
    # figure right, is valid whatever key was used: a rotated key must not hide a payment.
    is_foreign = asked is not None and asked.is_of_other_account(report.account)
    if is_foreign and report.outcome not in (Outcome.SUCCEEDED, Outcome.REVERSED):
        return _UNCHANGED
    attempt = next(
        (a for a in attempts if (a.provider_reference, a.gateway) == (report.provider_reference, gateway)), None
    )
    if not report.is_news:
        is_own = payment.environment is environment and attempt is not None
        if is_own and not report.is_known_status and payment.is_final:
            return _anomaly(report, AnomalyKind.UNKNOWN_STATUS)
        return _in_flight(report, attempts) if asked is not None else _UNCHANGED
    if payment.environment is not environment:
        return _anomaly(report, AnomalyKind.WRONG_ENVIRONMENT)
    if attempt is None:
        return _anomaly(report, AnomalyKind.WRONG_PROVIDER, gateway=gateway)
    if report.outcome is Outcome.FAILED and not attempt.is_handed_off:
        return _UNCHANGED  # nobody was sent there; the payer may be paying through another attempt
    if payment.status is Status.REVERSED:
        known = [*known, _told_by_status(payment, attempts, paid)]
    is_open, has_fee = not payment.as_of(now).is_final, report.is_back_with_fee(payment)
    if has_fee and (asked is None or not is_open):
        report = with_changes(report, amounts=report.amounts | {payment.amount})
    difference = report.mismatch(payment)
    if difference is None and report.trigger is None:
        return _judge_dispute(report, payment, paid, known, now)
    recent = [fact for fact in known if now < fact.at + REPEATED_FOR]
    if difference in (None, "amount") and actor != RECONCILIATION and _is_listed(report, payment, recent):
        return _UNCHANGED
    if difference == "amount" and report.is_partial_refund(payment):
        return _gone_back(report, payment, paid, known, AnomalyKind.PARTIAL_REFUND, actor, now)
    if difference is not None:
        return _mismatch(report, payment, difference)
    if has_fee and is_open:  # no such figure proves a payment; once it is paid, this is told
        return _gone_back(report, payment, paid, known, AnomalyKind.LATE_REVERSAL, actor, now)
    if report.outcome is Outcome.FAILED and asked is not None and attempt.may_still_be_paid(payment, now):
        # An answer to a check shows the last card's result; only a signed event ends the charge.
        return Verdict(ReportEffect.DECLINED, attempt=with_changes(attempt, last_decline=report.reason or DECLINED))
    return _settle(report, payment, attempt, paid, known, actor, now)


def was_paid(payment: Payment, known: Sequence[Anomaly]) -> bool:
    """Whether the payment was ever paid, whatever its status: its refunds and disputes are sent."""
    if payment.status in (Status.SUCCESS, Status.REVERSED):
        return True
    return any(fact.kind is AnomalyKind.LATE_SUCCESS for fact in known)


def _settle(
    report: ProviderReport,
    payment: Payment,
    attempt: Attempt,
    paid: Sequence[str | None],
    known: Sequence[Anomaly],
    actor: str,
    now: datetime,
) -> Verdict:
    """A report of an end that agrees with the payment in every fact."""
    trigger = TRIGGER_FOR[report.outcome]
    expired = (payment.expire(),) if payment.is_expired(now) else ()
    payment = payment.as_of(now)
    is_success = trigger is Trigger.SUCCEED
    confirmed = attempt.confirm(report.facts, now) if is_success else None
    if not payment.is_final:
        # A success or reversal names the charge, so that another paid one differs from a repeat.
        reason = report.reason if trigger is Trigger.FAIL else report.provider_reference
        served = payment.served_by(attempt.gateway)
        served = served if trigger is Trigger.FAIL else served.with_fee(report.facts.fee, report.facts.received)
        moved = served.move(trigger, now, actor=actor, reason=reason)
        if trigger is Trigger.REVERSE and attempt.gateway != SANDBOX_SLUG:
            confirmed = with_changes(attempt.confirm(report.facts, now), next_ask_at=None)
        return Verdict(ReportEffect.MOVED, (moved,), attempt=confirmed)
    charges = _charges(paid, known)
    is_same_charge = not charges.isdisjoint((report.provider_reference, SIMULATED))
    is_other_transaction = attempt.is_other_transaction(report.facts.provider_id)
    if is_success:
        if is_same_charge and not is_other_transaction:
            learned = confirmed if confirmed != attempt else None
            return Verdict(ReportEffect.UNCHANGED, expired, attempt=learned, facts=report.facts)
        if is_same_charge and report.facts.provider_id in _told_transactions(known):
            return Verdict(ReportEffect.UNCHANGED, expired)
        if charges:
            # The two may differ in the provider's id of the transaction alone.
            own_id = {"providerId": report.facts.provider_id} if is_same_charge else {}
            details = report.evidence(**own_id)
            paid_again = None if is_same_charge else confirmed  # it may be refunded, too
            kind = AnomalyKind.SECOND_CHARGE
            return Verdict(ReportEffect.ANOMALY, expired, attempt=paid_again, anomaly=kind, details=details)
    elif trigger is Trigger.REVERSE:
        second = report.facts.provider_id if is_other_transaction else None
        is_new = second is not None and second not in _told_transactions(known)
        # Where nothing names the charge that paid, this may be it; a FAILED payment may have none yet.
        is_first = payment.status is Status.FAILED and not charges
        is_paid_named = any(paid) or any(fact.kind is AnomalyKind.LATE_SUCCESS for fact in known)
        is_new |= is_first or (is_paid_named and not is_same_charge)
        if is_new and not _is_of_mismatch(report, payment, paid, known):
            # What went back came first, though its success was never told. That it went back is told next.
            details = with_changes(report, details={}).evidence(**({"providerId": second} if second else {}))
            kind = AnomalyKind.LATE_SUCCESS if is_first else AnomalyKind.SECOND_CHARGE
            came, facts = (attempt.confirm(report.facts, now), report.facts) if is_first else (None, None)
            return Verdict(ReportEffect.ANOMALY, expired, attempt=came, anomaly=kind, details=details, facts=facts)
        verdict = _gone_back(report, payment, paid, known, AnomalyKind.LATE_REVERSAL, actor, now)
        return with_changes(verdict, changes=expired)
    elif payment.status is Status.FAILED or is_other_transaction or (charges and not is_same_charge):
        return Verdict(ReportEffect.UNCHANGED, expired)  # a declined try says nothing about the one that paid
    # In the archive, the id is kept by this fact alone.
    own_id = {"providerId": report.facts.provider_id} if is_success and report.facts.provider_id else {}
    kind, details = LATE_FOR[trigger], report.evidence(**own_id)
    facts = report.facts if is_success else None
    return Verdict(ReportEffect.ANOMALY, expired, attempt=confirmed, anomaly=kind, details=details, facts=facts)


def _told_by_status(payment: Payment, attempts: Sequence[Attempt], paid: Sequence[str | None]) -> Anomaly:
    """What a REVERSED payment's status says: all that its charge brought went back. One that no transition names may be
    any. It claims no refund: what moved the payment was most likely the refund's own event."""
    own = next((attempt for attempt in attempts if attempt.provider_reference in paid), None)
    charge = {"providerReference": own.provider_reference, "providerId": own.provider_id} if own else {}
    at = (payment.settled_at or payment.updated_at) - REPEATED_FOR
    details = {**charge, "amounts": [payment.amount]}
    return Anomaly("status", payment.reference, AnomalyKind.LATE_REVERSAL, "status", details, at)


PAID_LATE = (AnomalyKind.LATE_SUCCESS, AnomalyKind.SECOND_CHARGE)


def _charges(paid: Sequence[str | None], known: Sequence[Anomaly]) -> set[str]:
    """The references of the charges that brought the payment's amount, as far as they are known."""
    late = (fact.details.get("providerReference") for fact in known if fact.kind in PAID_LATE)
    return {one for one in (*paid, *late) if one is not None}


def _told_transactions(known: Sequence[Anomaly]) -> list[str | None]:
    """The provider's ids of second transactions under one reference."""
    second = [fact for fact in known if fact.kind is AnomalyKind.SECOND_CHARGE]
    return [fact.details["providerId"] for fact in second if "providerId" in fact.details]


def _gone_back(
    report: ProviderReport,
    payment: Payment,
    paid: Sequence[str | None],
    known: Sequence[Anomaly],
    kind: AnomalyKind,
    actor: str,
    now: datetime,
) -> Verdict:
    """Money that went back. A refund or dispute has an id; a status alone has none, and may be about the same money: it
    counts only for money not known to have gone back."""
    if "disputeId" in report.details:
        verdict = _judge_dispute(report, payment, paid, known, now)
        is_new = not any(shares_name(fact.details, report.details) for fact in known)
        # The end of a dispute that nobody was told of repeats the status.
        is_repeat = payment.status is Status.REVERSED and is_new and verdict.details.get("amount") == 0
        return _UNCHANGED if is_repeat else verdict
    if _is_of_mismatch(report, payment, paid, known):
        return _mismatch(report, payment, "amount")
    before, came = _gone_before(report, payment, known, now)
    if not is_named(report.details):
        transactions = _gone_transactions(report, known)
        gone = payment.amount * max(1, len(transactions))
        more: dict[str, Any] = {}
        if report.facts.provider_id is not None:
            more["providerId"] = report.facts.provider_id
        if before.kobo and kind is AnomalyKind.LATE_REVERSAL:
            more["amount"] = gone - before.kobo
        return _UNCHANGED if before.kobo >= gone else _anomaly(report, kind, **more)
    # An event without an id may be sent again in other bytes.
    if before.kobo >= came and (before.is_unnamed or "eventDigest" in report.details):
        return _UNCHANGED
    others = [fact for fact in known if not shares_name(fact.details, report.details)]
    is_told = _is_told_as(AdjustmentKind.DISPUTE, report, payment, known) or _is_listed(report, payment, others)
    if is_told and actor != RECONCILIATION:
        return _anomaly(report, kind, amount=0)
    figure, left = _figure(report.evidence(), payment), came - before.kobo
    # A list's line is told only after the line of what the status told.
    if before.unclaimed and before.kobo >= payment.amount and actor != RECONCILIATION:
        return _anomaly(report, kind, amount=max(0, figure - before.unclaimed))
    if 0 <= left < figure <= left + (payment.fee or 0):
        return _anomaly(report, kind, amount=left)  # a last part, with the fee that the payer bore, or of it
    return _anomaly(report, kind)


def _figure(details: Mapping[str, Any], payment: Payment) -> int:
    """The kobo that a refund or dispute is about: all of the payment where it names none."""
    return figure_of(details, payment.amount) or payment.amount


def _gone_transactions(report: ProviderReport, known: Sequence[Anomaly]) -> set[str]:
    """The ids of the report's charge's transactions that a status alone tells to have gone back, with the report's own.
    A status that names none may be about any."""
    own = [fact for fact in _of_its_charge(report, known) if fact.kind is AnomalyKind.LATE_REVERSAL]
    told = [fact.details.get("providerId") for fact in own if not is_named(fact.details)]
    return {one for one in (*told, report.facts.provider_id) if one is not None}


def _judge_dispute(
    report: ProviderReport, payment: Payment, paid: Sequence[str | None], known: Sequence[Anomaly], now: datetime
) -> Verdict:
    """A dispute's state. Of one that was lost only that counts as gone which a status without an id, read before, does
    not count already, and nothing of money that never counted. Sent again, it is the fact that it was: without an id it
    would count itself as another."""
    said = report.evidence()
    for fact in known:
        if fact.kind is AnomalyKind.DISPUTE and {**fact.details, "amount": None} == {**said, "amount": None}:
            return Verdict(ReportEffect.ANOMALY, anomaly=AnomalyKind.DISPUTE, details=fact.details)
    if report.details.get("state") in LOST:
        if _is_of_mismatch(report, payment, paid, known):
            return _anomaly(report, AnomalyKind.DISPUTE, amount=0)
        before, came = _gone_before(report, payment, known, now)
        left = max(0, (payment.amount if before.unclaimed else came) - before.kobo)
        figure = max(report.amounts, default=payment.amount)
        if before.is_unnamed and figure > left:
            return _anomaly(report, AnomalyKind.DISPUTE, amount=left)
        opened = min((fact.at for fact in known if shares_name(fact.details, report.details)), default=None)
        if opened is not None and figure <= left:  # what was refunded before it was opened is none of it
            known = [fact for fact in known if fact.at > opened - REPEATED_FOR]
        if report.details.get("state") == ACCEPTED and _is_told_as(AdjustmentKind.REFUND, report, payment, known):
            return _anomaly(report, AnomalyKind.DISPUTE, amount=0)
    return _anomaly(report, AnomalyKind.DISPUTE)


def _is_of_mismatch(
    report: ProviderReport, payment: Payment, paid: Sequence[str | None], known: Sequence[Anomaly]
) -> bool:
    """Whether what went back is money that differed from the payment, which never counted: all that its charge brought,
    or the very figure that came beside the payment's amount and is not known to have gone back."""
    own = _of_its_charge(report, known)
    mismatches = [one.details for one in own if one.kind is AnomalyKind.MISMATCH and one.details["field"] == "amount"]
    transaction = report.facts.provider_id
    if any(
        shares_name(details, report.details) or (transaction and details.get("providerId") == transaction)
        for details in mismatches
    ):
        return True
    came, gone = ([one for one in mismatches if ("reason" in one) is is_paid] for is_paid in (True, False))
    charges = _charges(paid, known)
    if not was_paid(payment, known) or (charges and charges.isdisjoint((report.provider_reference, SIMULATED))):
        most = max((details.get("received", payment.amount) for details in came), default=-1)
        return min(report.amounts, default=0) <= most
    gone += [one.details for one in own if one.kind is AnomalyKind.DISPUTE and one.details.get("amount") == 0]
    figures = report.amounts - {payment.amount}
    # An event that calls its money an underpayment proves no figure: what was received is the one.
    told = [[{*one["amounts"], one.get("received")} for one in side] for side in (came, gone)]
    alike = [sum(not figures.isdisjoint(one) for one in side) for side in told]
    return alike[0] > alike[1]


def _is_told_as(other: AdjustmentKind, report: ProviderReport, payment: Payment, known: Sequence[Anomaly]) -> bool:
    """Whether the money of this refund or accepted dispute is known to have gone back by a fact of the other kind, of
    the same amount. For a dispute that its merchant accepts a provider makes a refund, whose event does not say for
    what; its list does. Each is kept, and the later one counts for nothing; one stands for one."""
    own = _of_its_charge(report, known)
    others = [fact for fact in own if is_named(fact.details) and not shares_name(fact.details, report.details)]
    alike = [fact for fact in others if _figure(fact.details, payment) == _figure(report.evidence(), payment)]
    told = adjustments_of(
        [fact for fact in alike if fact.kind is AnomalyKind.DISPUTE or fact.source != RECONCILIATION], payment.amount
    )
    is_dispute = other is AdjustmentKind.DISPUTE
    counted = [one for one in told if one.kind is other and one.effect and (one.state == ACCEPTED or not is_dispute)]
    return len(counted) > sum(one.kind is not other and one.amount == 0 for one in told)


def _gone_before(
    report: ProviderReport, payment: Payment, known: Sequence[Anomaly], now: datetime
) -> tuple[MoneyBack, int]:
    """What is known to have gone back of the report's charge by other facts, and the kobo that came by it: two
    transactions may have one reference. The event of what a status told comes while it is repeated, or never."""
    own = _of_its_charge(report, known)
    came = payment.amount * (1 + len(_told_transactions(own)))
    others = [fact for fact in own if not shares_name(fact.details, report.details)]
    return money_back(others, payment.amount, now - REPEATED_FOR), came


def _is_listed(report: ProviderReport, payment: Payment, known: Sequence[Anomaly]) -> bool:
    """Whether a list told of this refund already: an event that comes later names it otherwise, or not at all. One that
    comes when no event is repeated any more is kept and counts for nothing. Another refund of the same amount is told
    from the next list."""
    if report.outcome is not Outcome.REVERSED or "disputeId" in report.details:
        return False
    return any(
        fact.source == RECONCILIATION
        and KIND_FOR.get(fact.kind) is AdjustmentKind.REFUND
        and _figure(fact.details, payment) == _figure(report.evidence(), payment)
        for fact in _of_its_charge(report, known)
    )


def _of_its_charge(report: ProviderReport, known: Sequence[Anomaly]) -> list[Anomaly]:
    """The facts about the charge that the report is about: what went back of a second one is other money."""
    return [fact for fact in known if fact.details.get("providerReference") in (None, report.provider_reference)]


def _in_flight(report: ProviderReport, attempts: Sequence[Attempt]) -> Verdict:
    """The payer is trying again: an earlier decline no longer counts."""
    for attempt in attempts:
        if attempt.provider_reference == report.provider_reference and attempt.last_decline is not None:
            return Verdict(ReportEffect.UNCHANGED, attempt=with_changes(attempt, last_decline=None))
    return _UNCHANGED


def judge_silence(
    report: ProviderReport | None, payment: Payment, attempt: Attempt, *, actor: str, now: datetime
) -> Verdict:
    """The effect of the last check: with the provider's evidence that nothing was paid a PENDING payment expires;
    without it the payment stays PENDING and becomes an anomaly, unless another amount or currency was paid: that is
    one. The charge that its payer was sent to decides."""
    if payment.status is not Status.PENDING or not attempt.is_handed_off:
        return _UNCHANGED
    if report is not None and report.proves_unpaid(payment, attempt):
        return Verdict(ReportEffect.MOVED, (payment.move(Trigger.EXPIRE, now, actor=actor, reason=EXPIRED_REASON),))
    differs = report.mismatch(payment) if report is not None and report.outcome is Outcome.SUCCEEDED else None
    if differs in ("amount", "currency"):
        return _UNCHANGED
    details = {
        "providerReference": attempt.provider_reference,
        "gateway": attempt.gateway,
        "reason": AnomalyKind.NO_EVIDENCE.value,
        "expected": payment.amount,
    }
    return Verdict(ReportEffect.ANOMALY, anomaly=AnomalyKind.NO_EVIDENCE, details=details)


def _anomaly(report: ProviderReport, kind: AnomalyKind, **more: Any) -> Verdict:
    return Verdict(ReportEffect.ANOMALY, anomaly=kind, details=report.evidence(**more))


def _mismatch(report: ProviderReport, payment: Payment, fact: str) -> Verdict:
    """Facts that differ. When money came, the merchant is sent what was expected and received."""
    more: dict[str, Any] = {"field": fact, "expected": payment.amount}
    received = report.facts.received if report.facts.received is not None else max(report.amounts, default=None)
    if received is not None:
        more["received"] = received
    if report.outcome is Outcome.SUCCEEDED and fact in ("amount", "currency"):
        by_amount = "AMOUNT_UNKNOWN"
        if received is not None:
            # By what it proves: a fee that was owed on top may make more than the payment an underpayment.
            by_amount = "UNDERPAID" if max(report.amounts, default=0) < payment.amount else "OVERPAID"
        more["reason"] = by_amount if fact == "amount" else "CURRENCY_MISMATCH"
        if report.facts.provider_id is not None:  # two halves of a payment differ in it alone
            more["providerId"] = report.facts.provider_id
    return Verdict(ReportEffect.MISMATCH, anomaly=AnomalyKind.MISMATCH, details=report.evidence(**more))
