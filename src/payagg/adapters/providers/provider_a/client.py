"""The Paystack calls: initialize a transaction, verify one by our reference."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from payagg.adapters.providers.adapter import Events, Keys, ProviderAdapter, value
from payagg.adapters.providers.payer_defaults import email_of
from payagg.adapters.providers.provider_a.status_map import BASE_URL, PaystackTransaction, report_of
from payagg.adapters.providers.provider_a.webhook import READ, is_signed, read_event
from payagg.adapters.providers.transport import decode_body
from payagg.adapters.providers.values import ours
from payagg.domain.attempt import Charge, HandOff, HandOffKind
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment


class PaystackEnvelope(msgspec.Struct):
    """`status` says whether the API call worked, never whether anybody paid; old errors carry nothing else."""

    status: Any = None
    message: Any = None
    code: Any = None
    data: msgspec.Raw = msgspec.Raw(b"")
    meta: Any = None  # of lists: how many pages there are


class _Page(msgspec.Struct):
    authorization_url: str
    reference: str


class Paystack(ProviderAdapter):
    """`<env>WebhookSecret` may be left out: the secret key signs then."""

    keys = Keys(
        ("SecretKey", "WebhookSecret"),
        account="SecretKey",
        signing="WebhookSecret",
        foreign={Environment.SANDBOX: ("_live_",), Environment.LIVE: ("_test_",)},
    )
    starts_alone = False
    events = Events(is_signed, read_event, READ)
    base_url = BASE_URL

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return bool(value(credentials, environment, "SecretKey"))

    async def start_charge(self, charge: Charge) -> HandOff:
        """The page where the payer pays. Raises ProviderFault; DUPLICATE when the reference exists there already."""
        body = {
            "email": email_of(charge.customer_email, charge.reference),
            "amount": charge.amount,
            "currency": charge.currency,
            "reference": charge.reference,
            "callback_url": charge.checkout_url,
            "metadata": {"cancel_action": charge.checkout_url},
        }
        status, envelope = await self._send(charge, "POST", "/transaction/initialize", body)
        if not _is_success(status, envelope):
            raise fault_of(status, envelope)
        page = decode_body(envelope.data, _Page)
        # The payer's browser is sent there, so the address must meet the rules of an address that we call.
        if page.reference != charge.reference or not self._transport.is_page(page.authorization_url):
            raise ProviderFault(FaultKind.MALFORMED, "not the page of this charge")
        return HandOff(HandOffKind.REDIRECT, page.authorization_url)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        """The charge's status; UNPAID when Paystack has no such reference."""
        path = f"/transaction/verify/{quote(charge.reference, safe='')}"
        status, envelope = await self._send(charge, "GET", path)
        if not _is_success(status, envelope):
            if _is_unknown_reference(status, envelope):
                return ProviderReport(charge.reference, Outcome.UNPAID, NO_CHARGE)
            raise fault_of(status, envelope)
        transaction = decode_body(envelope.data, PaystackTransaction)
        reference = ours(transaction.reference)
        if reference is None:
            raise ProviderFault(FaultKind.MALFORMED, "the answer names no reference")
        return report_of(transaction, reference)

    async def _send(
        self, charge: Charge, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, PaystackEnvelope]:
        content = msgspec.json.encode(body) if body is not None else None
        answer = await self.send(charge.credentials, charge.environment, method, path, content)
        return answer.status, decode_body(answer.body, PaystackEnvelope)

    def _secret(self, credentials: Mapping[str, str], environment: Environment) -> str:
        """Paystack itself signs with the API secret key; a webhook secret of its own is for gateways in front of it."""
        return super()._secret(credentials, environment) or value(credentials, environment, "SecretKey")


def _is_success(status: int, envelope: PaystackEnvelope) -> bool:
    return status in (200, 201) and envelope.status is True


def _text(value: object) -> str:
    return value.lower() if isinstance(value, str) else ""


def _is_unknown_reference(status: int, envelope: PaystackEnvelope) -> bool:
    """404 by the specification, 400 in practice; the message decides, as a wrong address is a 404 too."""
    said = _text(envelope.message)
    known = _text(envelope.code) == "transaction_not_found" or ("not found" in said and "reference" in said)
    return status in (400, 404) and known


def fault_of(status: int, envelope: PaystackEnvelope) -> ProviderFault:
    """By HTTP status, then code, then message: older errors carry the last alone."""
    code, said = _text(envelope.code), _text(envelope.message)
    if code == "duplicate_reference" or "duplicate transaction reference" in said:
        return ProviderFault(FaultKind.DUPLICATE)
    if status in (401, 403) or "invalid key" in said:
        return ProviderFault(FaultKind.BAD_CREDENTIALS)
    if 400 <= status < 500:
        return ProviderFault(FaultKind.REJECTED, f"status {status}")
    return ProviderFault(FaultKind.MALFORMED, f"status {status} without a usable answer")
