"""Paystack's statuses as data, and the one reading of a transaction that verify and webhooks share."""

from typing import Any

import msgspec

from payagg.adapters.providers.values import identity, instant, kobo_of, reason_of, word
from payagg.domain.attempt import ChargeFacts
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment

BASE_URL = "https://api.paystack.co"
UNIT = 1  # Paystack speaks kobo
DOMAINS = {"test": Environment.SANDBOX, "live": Environment.LIVE}
# Any other status leaves the payment in flight. `abandoned` only means that nobody has paid yet.
OUTCOMES = {
    "success": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "reversed": Outcome.REVERSED,
    "abandoned": Outcome.UNPAID,
}
# Statuses of a payment in progress; a status in neither table is unknown.
IN_FLIGHT = frozenset({"ongoing", "pending", "processing", "queued"})
ABSENT = msgspec.Raw(b"")


class PaystackTransaction(msgspec.Struct):
    """What we read of `data`; types drift in practice, so whatever is not money or identity may be anything."""

    status: Any = None
    reference: Any = None
    domain: Any = None
    currency: Any = None
    amount: msgspec.Raw = ABSENT
    requested_amount: msgspec.Raw = ABSENT
    gateway_response: Any = None
    message: Any = None
    id: Any = None
    channel: Any = None
    fees: msgspec.Raw = ABSENT
    paid_at: Any = None


def report_of(transaction: PaystackTransaction, reference: str) -> ProviderReport:
    """The report in a transaction. Without its environment, a transaction proves nothing: PENDING, and a status for
    people to look up once the payment has ended."""
    said, domain = transaction.status, transaction.domain
    outcome = OUTCOMES.get(said, Outcome.PENDING) if isinstance(said, str) else Outcome.PENDING
    environment = DOMAINS.get(domain) if isinstance(domain, str) else None
    paid = kobo_of(transaction.amount, UNIT)
    is_proven = environment is not None or outcome not in (Outcome.SUCCEEDED, Outcome.REVERSED)
    return ProviderReport(
        provider_reference=reference,
        outcome=outcome if is_proven else Outcome.PENDING,
        word=word(transaction.status),
        amounts=_amounts(paid, transaction),
        currency=word(transaction.currency),
        environment=environment,
        reason=reason_of(transaction.gateway_response, transaction.message) if outcome is Outcome.FAILED else None,
        is_known_status=is_proven and isinstance(said, str) and (said in OUTCOMES or said in IN_FLIGHT),
        facts=ChargeFacts(
            provider_id=identity(transaction.id),
            channel=word(transaction.channel) or None,
            fee=kobo_of(transaction.fees, UNIT),
            received=paid,
            paid_at=instant(transaction.paid_at),
        ),
    )


def _amounts(paid: int | None, transaction: PaystackTransaction) -> frozenset[int]:
    """`amount` is the requested amount plus fees where the payer bears them, so the requested one is compared;
    but never when less than it was paid."""
    requested = kobo_of(transaction.requested_amount, UNIT)
    if paid is None:
        return frozenset()
    return frozenset({requested if requested is not None and paid >= requested else paid})
