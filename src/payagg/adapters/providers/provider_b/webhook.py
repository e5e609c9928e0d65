"""Payaza's events: the signature over the raw bytes first, then a narrow reading. A body has no event name or id."""

import base64
import hmac
from typing import Any

import msgspec

from payagg.adapters.providers.body_redaction import names_in
from payagg.adapters.providers.provider_b.status_map import ABSENT, OUTCOMES, UNIT, amounts_received, facts_of, is_known
from payagg.adapters.providers.transport import decode_body
from payagg.adapters.providers.values import kobo_of, ours, reason_of, word
from payagg.domain.report import Outcome, ProviderReport

DIGEST = "sha512"  # standard base64 of HMAC-SHA512; hex is accepted as well
RECEIVED = "Funds Received"  # `transaction_status` beside `status: Completed`
PAYOUT = "DEBIT"
PAYOUT_PREFIX = "NIP_"


class _PayazaEvent(msgspec.Struct):
    merchant_reference: Any = None
    transaction_reference: Any = None
    transaction_status: Any = None
    transaction_type: Any = None
    status: Any = None
    amount_received: msgspec.Raw = ABSENT
    request_amount: msgspec.Raw = ABSENT
    transaction_fee: msgspec.Raw = ABSENT
    amount_validation: Any = None
    currency_code: Any = None
    status_reason: Any = None
    channel: Any = None


READ = names_in(_PayazaEvent)


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether `signature` is the base64 or hex HMAC of the raw bytes; an empty secret never signs."""
    digest = signature.strip()
    mac = hmac.new(secret.encode(), body, DIGEST)
    base64_matches = hmac.compare_digest(digest.encode("utf-8", "replace"), base64.b64encode(mac.digest()))
    hex_matches = hmac.compare_digest(digest.lower().encode("utf-8", "replace"), mac.hexdigest().encode())
    return (base64_matches or hex_matches) and bool(secret)


def read_event(body: bytes) -> ProviderReport | None:
    """The report in a signed event, None for payouts and for references that are not ours; raises MALFORMED."""
    event = decode_body(body, _PayazaEvent)
    said = event.transaction_status if isinstance(event.transaction_status, str) else ""
    if event.transaction_type == PAYOUT or said.startswith(PAYOUT_PREFIX):
        return None
    # One official card sample has no merchant_reference and carries ours in the other field.
    reference = ours(event.merchant_reference) or ours(event.transaction_reference)
    if reference is None:
        return None
    outcome = OUTCOMES.get(event.status, Outcome.PENDING) if isinstance(event.status, str) else Outcome.PENDING
    is_clear = said in (RECEIVED, event.status, "") if outcome is Outcome.SUCCEEDED else said != RECEIVED
    if not is_clear:
        # Two fields that disagree prove nothing: a status check decides, and people do once the payment has ended.
        outcome = Outcome.PENDING
    return ProviderReport(
        provider_reference=reference,
        outcome=outcome,
        word=word(event.status if is_clear else said),
        amounts=_amounts(event),
        currency=word(event.currency_code),
        reason=reason_of(event.status_reason) if outcome is Outcome.FAILED else None,
        is_known_status=is_clear and is_known(event.status),
        facts=facts_of(
            event.transaction_reference, event.amount_received, event.transaction_fee, event.channel, outcome
        ),
    )


def _amounts(event: _PayazaEvent) -> frozenset[int]:
    """Figures that prove the payment in full; what Payaza itself calls an underpayment proves nothing."""
    if event.amount_validation == "UNDERPAYMENT":
        return frozenset()
    proven = amounts_received(event.amount_received, event.transaction_fee)
    paid, requested = kobo_of(event.amount_received, UNIT), kobo_of(event.request_amount, UNIT)
    # EXACT stands on failures too, so it counts for nothing without the paid status that the outcome carries.
    # A card sample has no amount_received; one that is there and cannot be read proves nothing.
    is_covered = paid >= requested if paid is not None and requested is not None else _is_absent(event.amount_received)
    if event.amount_validation == "EXACT" and requested is not None and is_covered:
        return proven | {requested}
    return proven


def _is_absent(value: msgspec.Raw) -> bool:
    return bytes(value) in (b"", b"null")
