"""The Payaza calls: look a charge up by our reference. Starting one needs no call: the launch parameters go to
the browser in the fragment of our own page, which it never sends anywhere."""

import base64
import re
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import msgspec

from payagg.adapters.providers.adapter import Events, Keys, ProviderAdapter, value
from payagg.adapters.providers.payer_defaults import alias, names_of, phone_of
from payagg.adapters.providers.provider_b.status_map import (
    ABSENT,
    BASE_URL,
    OUTCOMES,
    amounts_received,
    facts_of,
    is_known,
)
from payagg.adapters.providers.provider_b.webhook import READ, is_signed, read_event
from payagg.adapters.providers.transport import decode_body
from payagg.adapters.providers.values import naira_text, ours, reason_of, word
from payagg.domain.attempt import Charge, HandOff, HandOffKind
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment

# Left out, the mode means Test, even with a live key.
MODES = {Environment.SANDBOX: "Test", Environment.LIVE: "Live"}
# The language of the SDK's own pattern, without its ambiguity (as written there it backtracks without end). It refuses
# many good addresses (a plus sign, an ending of more than three letters), and then the popup never opens; such a payer
# gets an alias instead.
SDK_EMAIL = re.compile(r"\w+(?:[.-]\w+)*@\w+(?:[.-]\w+)*\.\w{2,3}", re.ASCII)
_WINDOW_MINUTES = 60  # a virtual account must not outlive our checkout window
# A number, not a string, and exactly the naira of the integer kobo.
_encoder = msgspec.json.Encoder(decimal_format="number")


def launch_parameters(charge: Charge) -> bytes:
    """The JSON for `PayazaCheckout.setup`; holds the public key and no secret."""
    first_name, last_name = names_of(charge.customer_name)
    email = charge.customer_email or ""
    return _encoder.encode(
        {
            "merchant_key": value(charge.credentials, charge.environment, "PublicKey"),
            "connection_mode": MODES[charge.environment],
            "checkout_amount": Decimal(naira_text(charge.amount)),
            "currency_code": charge.currency,
            "email_address": email if SDK_EMAIL.fullmatch(email) else alias(charge.reference),
            "first_name": first_name,
            "last_name": last_name,
            "phone_number": phone_of(charge.customer_phone),
            "transaction_reference": charge.reference,
            "virtual_account_configuration": {"expires_in_minutes": _WINDOW_MINUTES},
        }
    )


def launch_url(charge: Charge) -> str:
    """Our launch page with the parameters as base64url after the `#`."""
    encoded = base64.urlsafe_b64encode(launch_parameters(charge)).rstrip(b"=").decode()
    return f"{charge.checkout_url}/launch#{encoded}"


_QUERIES = "/merchant-collection/transfer_notification_controller"
QUERY, OWN_QUERY = f"{_QUERIES}/merchant/transaction-query", f"{_QUERIES}/transaction-query"  # by ours, by Payaza's


class PayazaEnvelope(msgspec.Struct):
    """Three envelopes in one: `message, success, data`, of lists with `status` for `success`, and, for errors,
    `response_code, response_message`. `success` says that data was found, never that anybody paid."""

    success: Any = None
    status: Any = None
    message: Any = None
    response_code: Any = None
    response_message: Any = None
    data: msgspec.Raw = ABSENT


class PayazaTransaction(msgspec.Struct):
    """`amount_received` is filled in before anything is received, so it counts only beside a paid status."""

    merchant_transaction_reference: Any = None
    transaction_status: Any = None
    amount_received: msgspec.Raw = ABSENT
    transaction_fee: msgspec.Raw = ABSENT
    currency: Any = None
    status_reason: Any = None
    transaction_reference: Any = None
    transaction_type: Any = None


class Payaza(ProviderAdapter):
    """The secret only signs; the public key goes to the browser and queries."""

    keys = Keys(
        ("PublicKey", "SigningSecret"),
        account="PublicKey",
        signing="SigningSecret",
        foreign={Environment.SANDBOX: ("PKLIVE", "SKLIVE"), Environment.LIVE: ("PKTEST", "SKTEST")},
    )
    starts_alone = True
    events = Events(is_signed, read_event, READ)
    base_url = BASE_URL

    async def start_charge(self, charge: Charge) -> HandOff:
        return HandOff(HandOffKind.SDK, launch_url(charge))

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        """The charge's status; UNPAID when Payaza has no such reference: the popup was never opened."""
        path = f"{QUERY}?merchant_reference={quote(charge.reference, safe='')}"
        answer = await self.send(charge.credentials, charge.environment, "GET", path)
        status, envelope = answer.status, decode_body(answer.body, PayazaEnvelope)
        if not (status == 200 and envelope.success is True):
            if is_unknown_reference(envelope):
                return ProviderReport(charge.reference, Outcome.UNPAID, NO_CHARGE)
            raise fault_of(status, envelope)
        transaction = decode_body(envelope.data, PayazaTransaction)
        reference = ours(transaction.merchant_transaction_reference)
        if reference is None:
            raise ProviderFault(FaultKind.MALFORMED, "the answer names no reference")
        said = transaction.transaction_status
        outcome = OUTCOMES.get(said, Outcome.PENDING) if isinstance(said, str) else Outcome.PENDING
        return ProviderReport(
            provider_reference=reference,
            outcome=outcome,
            word=word(said),
            amounts=amounts_received(transaction.amount_received, transaction.transaction_fee),
            currency=word(transaction.currency),
            reason=reason_of(transaction.status_reason) if outcome is Outcome.FAILED else None,
            is_known_status=is_known(said),
            facts=facts_of(
                transaction.transaction_reference,
                transaction.amount_received,
                transaction.transaction_fee,
                transaction.transaction_type,
                outcome,
            ),
        )

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Payaza {base64.b64encode(key.encode()).decode()}"}


def _message_of(envelope: PayazaEnvelope) -> str:
    return " ".join(text.lower() for text in (envelope.message, envelope.response_message) if isinstance(text, str))


def is_unknown_reference(envelope: PayazaEnvelope) -> bool:
    """The HTTP status of this answer is not documented, so only the body's words decide."""
    return re.search("transaction (data )?not found", _message_of(envelope)) is not None


def fault_of(status: int, envelope: PayazaEnvelope) -> ProviderFault:
    if status in (401, 403) or "authentication failed" in _message_of(envelope):
        return ProviderFault(FaultKind.BAD_CREDENTIALS)
    if isinstance(envelope.response_code, int) and envelope.response_code >= 500:
        return ProviderFault(FaultKind.SERVER_ERROR, "an error inside a good status")
    if 400 <= status < 500:
        return ProviderFault(FaultKind.REJECTED, f"status {status}")
    return ProviderFault(FaultKind.MALFORMED, f"status {status} without a usable answer")
