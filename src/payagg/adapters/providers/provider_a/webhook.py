"""Paystack's events: the signature over the raw bytes first, then a narrow reading."""

import hmac
from dataclasses import replace
from typing import Any

import msgspec

from payagg.adapters.providers.body_redaction import names_in
from payagg.adapters.providers.provider_a.status_map import ABSENT, DOMAINS, UNIT, PaystackTransaction, report_of
from payagg.adapters.providers.transport import decode_body
from payagg.adapters.providers.values import identity, instant, kobo_of, ours, word
from payagg.domain.report import Outcome, ProviderReport

DIGEST = "sha512"  # lower-case hex of HMAC-SHA512

# Events about one of our charges; the account's others (transfers, subscriptions ...) are acknowledged and ignored.
CHARGES = frozenset({"charge.success", "charge.failed"})
REFUNDED = "refund.processed"
DISPUTE_RESOLVED = "charge.dispute.resolve"
ACCEPTED = frozenset({"merchant-accepted", "auto-accepted"})  # by the merchant, or because he did not answer
DISPUTES = frozenset({"charge.dispute.create", "charge.dispute.remind", DISPUTE_RESOLVED})


class _PaystackEvent(msgspec.Struct):
    event: str
    data: msgspec.Raw


class _Refund(msgspec.Struct):
    """`amount` is a number in some events and a string in others."""

    transaction_reference: Any = None
    refund_reference: Any = None
    id: Any = None
    amount: msgspec.Raw = ABSENT
    currency: Any = None
    domain: Any = None
    status: Any = None


class _Dispute(msgspec.Struct):
    id: Any = None
    resolution: Any = None
    refund_amount: msgspec.Raw = ABSENT
    due_at: Any = None
    dueAt: Any = None  # noqa: N815 - both spellings appear
    transaction: PaystackTransaction = msgspec.field(default_factory=PaystackTransaction)


READ = names_in(_PaystackEvent, PaystackTransaction, _Refund, _Dispute)


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether `signature` is the hex HMAC of the raw bytes; upper case is accepted, an empty secret never."""
    digest = signature.strip().lower().encode("utf-8", "replace")
    expected = hmac.digest(secret.encode(), body, DIGEST).hex().encode()
    return hmac.compare_digest(digest, expected) and bool(secret)


def read_event(body: bytes) -> ProviderReport | None:
    """The report in a signed event, None for one that is not about a charge of ours; raises MALFORMED."""
    event = decode_body(body, _PaystackEvent)
    if event.event in CHARGES:
        return _charge(decode_body(event.data, PaystackTransaction))
    if event.event == REFUNDED:
        return _refund(decode_body(event.data, _Refund))
    if event.event in DISPUTES:
        return _dispute(event.event, decode_body(event.data, _Dispute))
    return None


def _charge(transaction: PaystackTransaction) -> ProviderReport | None:
    reference = ours(transaction.reference)
    return report_of(transaction, reference) if reference is not None else None


def _refund(refund: _Refund) -> ProviderReport | None:
    """REVERSED with the refunded amount: only a refund of the whole amount can match the payment's."""
    reference = ours(refund.transaction_reference)
    if reference is None:
        return None
    amount = kobo_of(refund.amount, UNIT)
    return ProviderReport(
        provider_reference=reference,
        outcome=Outcome.REVERSED,
        word=word(refund.status) or REFUNDED,
        amounts=frozenset() if amount is None else frozenset({amount}),
        currency=word(refund.currency),
        environment=DOMAINS.get(refund.domain) if isinstance(refund.domain, str) else None,
        # Two refunds of half each are two facts.
        details={"refundId": known} if (known := word(refund.refund_reference) or identity(refund.id)) else {},
    )


def _dispute(event: str, dispute: _Dispute) -> ProviderReport | None:
    """DISPUTED with the state of the dispute, or REVERSED once all of the money went back. A reminder states the same
    fact as the dispute it reminds of."""
    report = _charge(dispute.transaction)
    if report is None:
        return None
    is_resolved, is_reversed = event == DISPUTE_RESOLVED, dispute.transaction.status == "reversed"
    state = _state(word(dispute.resolution), is_reversed=is_reversed) if is_resolved else "opened"
    part = kobo_of(dispute.refund_amount, UNIT)
    due = instant(dispute.due_at or dispute.dueAt)
    details = {
        "disputeId": identity(dispute.id) or "",
        "state": state,
        "resolution": word(dispute.resolution),
        **({"dueAt": due.isoformat()} if due is not None and state == "opened" else {}),
    }
    is_whole = part is None or part >= max(report.amounts, default=0)
    if is_resolved and report.outcome is Outcome.REVERSED and is_whole:
        return replace(report, details=details)
    return ProviderReport(
        provider_reference=report.provider_reference,
        outcome=Outcome.DISPUTED,
        word="resolved" if is_resolved else "disputed",
        amounts=frozenset() if part is None else frozenset({part}),
        currency=report.currency,
        environment=report.environment,
        details=details,
    )


def _state(resolution: str, *, is_reversed: bool) -> str:
    """How a resolved dispute ended: with the money gone unless the merchant's answer stood."""
    if resolution in ACCEPTED:
        return "accepted"
    return "lost" if is_reversed else "won"
