"""Reconciliation: a provider's own lines beside our payments. Each line and each payment falls into exactly one bucket,
whatever the order they come in, so sums over the buckets are the sums of what was given."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import Enum
from operator import attrgetter

from payagg.domain.adjustment import KIND_FOR, AdjustmentKind, figure_of, is_named
from payagg.domain.anomaly import RECONCILIATION, Anomaly, AnomalyKind
from payagg.domain.attempt import payment_reference
from payagg.domain.checks import with_changes
from payagg.domain.errors import invalid
from payagg.domain.payment import PAYMENT, Status
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import CURRENCY, REFERENCE_SHAPE, Environment


class LineKind(Enum):
    CHARGE = "CHARGE"
    REFUND = "REFUND"
    DISPUTE = "DISPUTE"


class MatchBucket(Enum):
    """How a line and a payment compare. A payment falls where its charge does; each refund and dispute by itself."""

    AGREED = "AGREED"  # nobody was charged on either side is agreement too
    THERE_ONLY = "THERE_ONLY"  # money there under a reference of ours that is no payment of this gateway here
    HERE_ONLY = "HERE_ONLY"  # paid here, no money there
    OTHER_AMOUNT = "OTHER_AMOUNT"  # or another currency or environment
    RETURNED_THERE = "RETURNED_THERE"  # reversed, refunded or disputed there
    TWO_THERE = "TWO_THERE"  # two charges under one payment's references, each paid
    PAID_THERE = "PAID_THERE"  # paid there; open, FAILED or REVERSED here
    FOREIGN = "FOREIGN"  # the account's other business: no reference that we make
    UNREADABLE = "UNREADABLE"  # of findings alone: a line that could not be read is matched with nothing


NO_FINDING = (MatchBucket.AGREED, MatchBucket.FOREIGN)
PAID_OUTCOMES = (Outcome.SUCCEEDED, Outcome.REVERSED)  # the payer's money came in, whatever became of it
CLOCKS_APART = timedelta(minutes=5)
PAID_STATUSES = (Status.SUCCESS, Status.REVERSED)


@dataclass(frozen=True, slots=True)
class ProviderLine:
    """One line of a provider's list or statement. `id` is the provider's own; `amount` the kobo that it names;
    `at` None where the line has no instant with a zone."""

    kind: LineKind
    id: str
    amount: int
    at: datetime | None
    report: ProviderReport

    @property
    def reference(self) -> str:
        """The payment's that it would be about."""
        return payment_reference(self.report.provider_reference)

    @property
    def is_paid(self) -> bool:
        return self.report.outcome in PAID_OUTCOMES

    def agrees_with(self, payment: "OurPayment") -> bool:
        said = self.report
        is_environment = said.environment in (None, payment.environment)
        return payment.amount in said.amounts and said.currency == CURRENCY and is_environment


@dataclass(frozen=True, slots=True)
class OurPayment:
    """What is compared of a payment; `amount` is kobo. `is_within`: its payer was sent to the provider on the days that
    are reconciled, so that its charge must be among the lines."""

    reference: str
    amount: int
    status: Status
    environment: Environment
    is_within: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """One bucket's entry. `reports` are those of its lines that `judge` is to see."""

    bucket: MatchBucket
    payment: OurPayment | None
    lines: tuple[ProviderLine, ...]
    reports: tuple[ProviderReport, ...] = ()

    @property
    def is_refund(self) -> bool:
        return self.payment is None and self.lines[0].kind is LineKind.REFUND

    def findings(self, run_id: str, number: int, effect: str | None) -> "list[ReconciliationFinding]":
        """One for each line, numbered from `number`, or for the payment without any."""
        ours = self.payment
        if not self.lines:
            assert ours is not None
            return [ReconciliationFinding(run_id, number, self.bucket, ours.reference, ours=ours.amount, effect=effect)]
        return [
            ReconciliationFinding(
                run_id=run_id,
                number=number + place,
                bucket=self.bucket,
                reference=line.reference,
                provider_reference=line.report.provider_reference,
                line_kind=line.kind,
                line_id=line.id,
                ours=ours.amount if ours is not None else None,
                theirs=line.amount,
                effect=effect,
            )
            for place, line in enumerate(self.lines)
        ]


@dataclass(frozen=True)
class BucketTotal:
    """`ours` and `theirs` are kobo."""

    payments: int = 0
    ours: int = 0
    lines: int = 0
    theirs: int = 0


def match_all(
    lines: Iterable[ProviderLine], payments: Iterable[OurPayment], other_cells: Collection[str] = ()
) -> list[Match]:
    """Every line and every payment in one match each, by reference. References of `payments` are unique; references
    that begin with one of `other_cells` are another installation's on the same account."""
    ours = {payment.reference: payment for payment in payments}
    theirs: dict[str, list[ProviderLine]] = {}
    for line in lines:
        theirs.setdefault(line.reference, []).append(line)
    found: list[Match] = []
    for reference in sorted(ours.keys() | theirs.keys()):
        group = sorted(theirs.get(reference, ()), key=_order)
        payment = ours.get(reference)
        if payment is not None:
            found += _of_payment(payment, group)
            continue
        is_ours = REFERENCE_SHAPE.fullmatch(reference) is not None and reference[:3] not in other_cells
        found += [_of_stranger(line, is_ours=is_ours) for line in group]
    return found


def _order(line: ProviderLine) -> tuple[str, ...]:
    said = line.report
    facts = (said.outcome.value, line.amount, sorted(said.amounts), said.currency, said.environment, said.word)
    return line.kind.value, line.id, said.provider_reference, *map(str, facts)


def _of_stranger(line: ProviderLine, *, is_ours: bool) -> Match:
    if not is_ours:
        return Match(MatchBucket.FOREIGN, None, (line,))
    if not line.report.is_news or line.report.outcome is Outcome.FAILED:
        return Match(MatchBucket.AGREED, None, (line,))
    return Match(MatchBucket.THERE_ONLY, None, (line,), (line.report,))


def _of_payment(payment: OurPayment, lines: Sequence[ProviderLine]) -> list[Match]:
    charges = tuple(line for line in lines if line.kind is LineKind.CHARGE)
    returns = [line for line in lines if line.kind is not LineKind.CHARGE]
    paid = [line for line in charges if line.is_paid]
    wholes = [line for line in returns if line.report.outcome is Outcome.REVERSED and line.agrees_with(payment)]
    is_paid_twice = len({line.report.provider_reference for line in paid}) > 1 or len(wholes) > 1
    matches = [_of_return(payment, line, is_paid_twice=is_paid_twice) for line in returns]
    bucket = _bucket_of_charges(payment, paid)
    # The refund itself says more than the charge that it reversed, and both are one fact; but a part ends no payment.
    is_told = bucket is MatchBucket.RETURNED_THERE and any(match.reports for match in matches)
    is_told &= payment.status in PAYMENT.final
    # A card that failed says nothing beside one that paid: told first, it would end an open payment.
    told = [] if bucket in NO_FINDING or is_told else paid or [line for line in charges if line.report.is_news]
    reports = [line.report for line in told]
    if bucket is MatchBucket.TWO_THERE and any(match.reports for match in matches):
        # All of them came; what went back is told by its own line.
        reports = [replace(one, outcome=Outcome.SUCCEEDED) if one.outcome in PAID_OUTCOMES else one for one in reports]
    # One that stands before one that was reversed, which would end an open payment.
    reports.sort(key=lambda report: report.outcome is Outcome.REVERSED)
    return [Match(bucket, payment, charges, tuple(reports)), *matches]


def _bucket_of_charges(payment: OurPayment, paid: Sequence[ProviderLine]) -> MatchBucket:
    if not paid:
        return MatchBucket.HERE_ONLY if payment.is_within and payment.status in PAID_STATUSES else MatchBucket.AGREED
    if len(paid) > 1:
        return MatchBucket.TWO_THERE
    (line,) = paid
    if not line.agrees_with(payment):
        return MatchBucket.OTHER_AMOUNT
    if line.report.outcome is Outcome.REVERSED:
        return MatchBucket.AGREED if payment.status is Status.REVERSED else MatchBucket.RETURNED_THERE
    return MatchBucket.AGREED if payment.status is Status.SUCCESS else MatchBucket.PAID_THERE


def _of_return(payment: OurPayment, line: ProviderLine, *, is_paid_twice: bool) -> Match:
    """A refund or dispute. One that is under way, was refused, or is of a payment that is REVERSED here agrees, but for
    one that was paid twice: the status tells of one of them."""
    is_in_status = payment.status is Status.REVERSED and line.agrees_with(payment) and not is_paid_twice
    if not line.report.is_news or is_in_status:
        return Match(MatchBucket.AGREED, None, (line,))
    return Match(MatchBucket.RETURNED_THERE, None, (line,), (line.report,))


def totals(matches: Iterable[Match]) -> dict[MatchBucket, BucketTotal]:
    """Counts and sums of each bucket that has anything."""
    found: dict[MatchBucket, BucketTotal] = {}
    for match in matches:
        before = found.get(match.bucket, BucketTotal())
        found[match.bucket] = BucketTotal(
            before.payments + (match.payment is not None),
            before.ours + (match.payment.amount if match.payment is not None else 0),
            before.lines + len(match.lines),
            before.theirs + sum(line.amount for line in match.lines),
        )
    return found


def fact_of(line: ProviderLine, known: Iterable[Anomaly], listed: Collection[str] = ()) -> Anomaly | None:
    """The anomaly that tells of this refund already, of those of its payment that no other line is about. `listed` are
    the ids of all refunds' lines.

    A provider's event may name a refund otherwise than its list does, or not at all. It comes after the refund was
    made, so the first of the same amount that came since is it, unless a list brought it under an id of its own.
    """
    if line.kind is not LineKind.REFUND:
        return None  # a dispute has one id everywhere
    own = (None, line.report.provider_reference)  # of its charge: a payment that was paid twice has two
    charge = [fact for fact in known if fact.details.get("providerReference") in own]
    returned = [
        fact
        for fact in charge
        if (KIND_FOR.get(fact.kind) is AdjustmentKind.REFUND and fact.details.get("amount") != 0)
        or (fact.kind is AnomalyKind.MISMATCH and is_named(fact.details))  # of money that never counted
    ]  # one that counts for nothing was taken for other money: the list knows better
    for fact in returned:
        if fact.details.get("refundId") == line.id:
            return fact
    for fact in sorted(returned, key=attrgetter("id")):
        if fact.details.get("refundId") in listed:
            continue  # of the line of that id
        is_since = line.at is not None and fact.at >= line.at - CLOCKS_APART
        if fact.source != RECONCILIATION and is_since and figure_of(fact.details) == line.amount:
            return fact
    return None


def check_unit(matches: Sequence[Match]) -> None:
    """Raises VALIDATION_ERROR on `file` where hardly an amount agrees: a file that gives kobo for naira would make an
    anomaly of every payment."""
    found, none = totals(matches), BucketTotal()
    if found.get(MatchBucket.OTHER_AMOUNT, none).lines > max(found.get(MatchBucket.AGREED, none).lines, 1):
        raise invalid("file", "Agrees with hardly any amount: is its unit the one that its column names?")


@dataclass(frozen=True)
class ReconciliationRun:
    """One reconciliation of a gateway's days, both included. `source` is `list`, or `file` and the file's SHA-256.
    Without `ended_at` it is under way, or was killed. `claim` is unique: which of all workers does the day."""

    id: str
    gateway: str
    environment: Environment
    first_day: date
    last_day: date
    source: str
    started_by: str
    started_at: datetime
    claim: str | None = None
    ended_at: datetime | None = None
    totals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def end(self, found: Mapping[MatchBucket, BucketTotal], now: datetime) -> "ReconciliationRun":
        plain = {bucket.value: dict(vars(total)) for bucket, total in found.items()}
        return with_changes(self, ended_at=now, totals=plain)


@dataclass(frozen=True)
class ReconciliationFinding:
    """A row of what did not agree: one a line, or one for a payment without any. `ours` and `theirs` are kobo. `effect`
    is what the report of it did (a ReportEffect), None where there was nothing to report."""

    run_id: str
    number: int
    bucket: MatchBucket
    reference: str | None = None
    provider_reference: str | None = None
    line_kind: LineKind | None = None
    line_id: str | None = None  # of an UNREADABLE line its position
    ours: int | None = None
    theirs: int | None = None
    effect: str | None = None
