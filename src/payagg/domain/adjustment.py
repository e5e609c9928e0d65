"""Adjustments, beside a payment's status: refunds, disputes, money that came late, twice or short.

Derived from the payment's anomalies, which keep each fact as received.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from operator import attrgetter
from typing import Any

from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus


class AdjustmentKind(Enum):
    REFUND = "REFUND"
    DISPUTE = "DISPUTE"
    LATE_SUCCESS = "LATE_SUCCESS"  # paid after the payment had ended
    SECOND_CHARGE = "SECOND_CHARGE"  # paid twice
    ATTENTION = "ATTENTION"  # money that does not match the payment, or is unknown


KIND_FOR = {
    AnomalyKind.LATE_REVERSAL: AdjustmentKind.REFUND,
    AnomalyKind.PARTIAL_REFUND: AdjustmentKind.REFUND,
    AnomalyKind.DISPUTE: AdjustmentKind.DISPUTE,
    AnomalyKind.LATE_SUCCESS: AdjustmentKind.LATE_SUCCESS,
    AnomalyKind.SECOND_CHARGE: AdjustmentKind.SECOND_CHARGE,
    AnomalyKind.MISMATCH: AdjustmentKind.ATTENTION,
    AnomalyKind.NO_EVIDENCE: AdjustmentKind.ATTENTION,
}
NAMES = ("refundId", "disputeId", "eventDigest", "refundReference")
OPENED = "opened"  # the state of a dispute that is not resolved
ACCEPTED = "accepted"  # by the merchant, or because nobody answered
LOST = ("lost", ACCEPTED)  # states of a dispute whose money went back
# Kinds that people must close; a refund is done, and a dispute ends by its own state.
WORKED_OFF = (AdjustmentKind.LATE_SUCCESS, AdjustmentKind.SECOND_CHARGE, AdjustmentKind.ATTENTION)
OTHER_CURRENCY = "CURRENCY_MISMATCH"  # the reason whose figure is in no kobo


@dataclass(frozen=True)
class Adjustment:
    """`amount` is kobo, None when the provider named none: a dispute's disputed amount, ATTENTION's received amount
    unless in another currency. `state`: a dispute's `opened`, `won`, `lost` or `accepted`, ATTENTION's reason, else
    `processed`. Only ATTENTION has `expected` and `received`."""

    id: str  # of the anomaly with the latest fact
    reference: str
    kind: AdjustmentKind
    amount: int | None
    state: str
    at: datetime
    expected: int | None = None
    received: int | None = None
    is_closed: bool = False  # worked off by people

    @property
    def effect(self) -> int:
        return effect_of(self.kind, self.state, self.amount or 0)

    @property
    def needs_attention(self) -> bool:
        """Whether somebody must act: a dispute needs an answer until it is resolved, money that came late, twice or
        short until an operator closes its anomaly."""
        if self.kind is AdjustmentKind.DISPUTE:
            return self.state == OPENED
        return self.kind in WORKED_OFF and not self.is_closed


@dataclass(frozen=True)
class AdjustmentTotal:
    """The adjustments of one kind on one UTC day: their number, the sum of the known amounts, and their effect on the
    payments' total, in kobo of any size."""

    day: date
    kind: AdjustmentKind
    count: int
    amount: int
    effect: int


def effect_of(kind: AdjustmentKind, state: str, amount: int) -> int:
    """The effect in kobo of adjustments of `amount` on their payments' total; negative when money went back."""
    if kind is AdjustmentKind.REFUND or (kind is AdjustmentKind.DISPUTE and state in LOST):
        return -amount
    return amount if kind in (AdjustmentKind.LATE_SUCCESS, AdjustmentKind.SECOND_CHARGE) else 0


def amount_of(details: Mapping[str, Any], payment_amount: int | None = None) -> int | None:
    """The amount that an anomaly's facts count for."""
    return int(details["amount"]) if "amount" in details else figure_of(details, payment_amount)


def figure_of(details: Mapping[str, Any], payment_amount: int | None = None) -> int | None:
    """The provider's figure, whatever of it counts: the payment's own amount if it is among the figures, as the others
    include a fee that the payer bore."""
    amounts = details.get("amounts") or []
    return payment_amount if payment_amount in amounts else max(amounts, default=None)


def adjustments_of(facts: Sequence[Anomaly], payment_amount: int) -> list[Adjustment]:
    """The adjustments in one payment's anomalies, oldest first: by id, as a clock may be set back. The facts of one
    dispute are one adjustment. A mismatch counts when money came and it has a reason for its merchant."""
    found: dict[str, Adjustment] = {}
    for fact in sorted(facts, key=attrgetter("id")):
        kind, details = KIND_FOR.get(fact.kind), fact.details
        if kind is None or (kind is AdjustmentKind.ATTENTION and "reason" not in details):
            continue
        amount, state = amount_of(details, payment_amount), str(details.get("state") or "processed")
        expected = received = None
        if kind is AdjustmentKind.ATTENTION:
            expected, received, state = details.get("expected"), details.get("received"), str(details["reason"])
            amount = received if state != OTHER_CURRENCY else None
        elif kind is AdjustmentKind.DISPUTE and amount is None:
            amount = payment_amount  # a dispute that names no part is about all of it
        key = f"dispute {details['disputeId']}" if details.get("disputeId") else fact.id
        if state == OPENED and key in found:
            continue  # its event came late: the dispute's end or opening is already known
        found[key] = Adjustment(
            id=fact.id,
            reference=fact.reference or "",
            kind=kind,
            amount=amount,
            state=state,
            at=fact.at,
            expected=expected,
            received=received,
            is_closed=fact.status is AnomalyStatus.CLOSED,
        )
    return list(found.values())


# Of a REVERSED payment, whose status says already that they came and went back.
IN_STATUS = (AdjustmentKind.REFUND, AdjustmentKind.DISPUTE, AdjustmentKind.LATE_SUCCESS)


def added_up(groups: Iterable[tuple[date, AnomalyKind, str, bool, int, int]]) -> list[AdjustmentTotal]:
    """Totals by day and kind from groups that are finer: day, kind of anomaly, state, whether they are about the charge
    of REVERSED payments, how many, sum of amounts."""
    totals: dict[tuple[date, AdjustmentKind], AdjustmentTotal] = {}
    for day, of_anomaly, state, is_reversed, count, amount in groups:
        kind = KIND_FOR[of_anomaly]
        before = totals.get((day, kind), AdjustmentTotal(day, kind, 0, 0, 0))
        effect = before.effect + (0 if is_reversed and kind in IN_STATUS else effect_of(kind, state, amount))
        totals[day, kind] = AdjustmentTotal(day, kind, before.count + count, before.amount + amount, effect)
    order = {kind: number for number, kind in enumerate(AdjustmentKind)}
    return sorted(totals.values(), key=lambda total: (total.day, order[total.kind]))


def told_of(facts: Sequence[Anomaly], payment_amount: int) -> list[Adjustment]:
    """The adjustments that an event notified the merchant of."""
    return adjustments_of([fact for fact in facts if fact.event_sequence is not None], payment_amount)


@dataclass(frozen=True)
class MoneyBack:
    """`kobo` known to have gone back; `is_unnamed` = part of it by a status alone, without its own id; `unclaimed` =
    what of that part a fact with an id may still be about."""

    kobo: int
    is_unnamed: bool
    unclaimed: int


def is_named(details: Mapping[str, Any]) -> bool:
    """Whether the facts have an id that distinguishes two of them: of a refund or a dispute, or of the event of a
    refund without one."""
    return any(details.get(name) for name in NAMES)


def shares_name(details: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether both have the same id."""
    return any(details.get(name) and details.get(name) == others.get(name) for name in NAMES)


def money_back(facts: Sequence[Anomaly], payment_amount: int, since: datetime | None = None) -> MoneyBack:
    """The money that went back, by one payment's anomalies; what a status told up to `since` is claimed no more."""
    own = [fact for fact in facts if KIND_FOR.get(fact.kind) in (AdjustmentKind.REFUND, AdjustmentKind.DISPUTE)]
    unnamed = [fact for fact in own if not is_named(fact.details)]
    # A fact with an id counts for less than its figure where a status had told of the money before.
    claimed = sum(
        (figure_of(fact.details, payment_amount) or payment_amount) - fact.details["amount"]
        for fact in own
        if "amount" in fact.details and is_named(fact.details)
    )
    young = [fact for fact in unnamed if since is None or fact.at > since]
    gone, by_status = (-sum(one.effect for one in adjustments_of(facts, payment_amount)) for facts in (own, young))
    return MoneyBack(gone, bool(unnamed), max(0, by_status - claimed))
