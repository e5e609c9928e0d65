"""The Acme protocol: a call starts a charge and returns the page where the payer pays. Money is kobo."""

import hmac
from typing import Any

import msgspec

from payagg.adapters.providers.adapter import Events, Keys, ProviderAdapter
from payagg.adapters.providers.body_redaction import names_in
from payagg.adapters.providers.transport import ProviderAnswer, decode_body
from payagg.adapters.providers.values import kobo_of, ours, reason_of, word
from payagg.domain.attempt import Charge, HandOff, HandOffKind
from payagg.domain.report import NO_CHARGE, FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment

BASE_URL = "https://api.acme.example"
MODES = {"test": Environment.SANDBOX, "live": Environment.LIVE}
OUTCOMES = {"paid": Outcome.SUCCEEDED, "declined": Outcome.FAILED}
FAULTS = {401: FaultKind.BAD_CREDENTIALS, 409: FaultKind.DUPLICATE}


class _AcmeCharge(msgspec.Struct):
    """The answer to a question and the body of an event. `amount` is without the fee that a payer bears."""

    reference: Any
    state: Any = None
    mode: Any = None
    amount: msgspec.Raw = msgspec.Raw(b"")
    currency: Any = None
    reason: Any = None


class _AcmePage(msgspec.Struct):
    pay_url: str


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether `signature` is the hex HMAC-SHA256 of the raw bytes; an empty secret never signs."""
    expected = hmac.new(secret.encode(), body, "sha256").hexdigest()
    return bool(secret) and hmac.compare_digest(signature.encode(), expected.encode())


def report_in(body: bytes) -> ProviderReport | None:
    charge = decode_body(body, _AcmeCharge)
    reference, amount = ours(charge.reference), kobo_of(charge.amount, 1)
    outcome = OUTCOMES.get(charge.state, Outcome.PENDING)
    if reference is None:
        return None
    return ProviderReport(
        provider_reference=reference,
        outcome=outcome,
        word=word(charge.state),
        amounts=frozenset() if amount is None else frozenset({amount}),
        currency=word(charge.currency),
        environment=MODES.get(charge.mode),
        reason=reason_of(charge.reason) if outcome is Outcome.FAILED else None,
        is_known_status=charge.state in OUTCOMES,
    )


class Acme(ProviderAdapter):
    """Credentials: `<env>Key` and `<env>EventSecret`, with `sandbox` or `live` for `<env>`."""

    keys = Keys(
        ("Key", "EventSecret"),
        account="Key",
        signing="EventSecret",
        foreign={Environment.SANDBOX: ("_live_",), Environment.LIVE: ("_test_",)},
    )
    starts_alone = False
    events = Events(is_signed, report_in, names_in(_AcmeCharge))
    base_url = BASE_URL

    async def start_charge(self, charge: Charge) -> HandOff:
        wish = {"reference": charge.reference, "amount": charge.amount, "return_url": charge.checkout_url}
        answer = await self._send(charge, "POST", "/charges", msgspec.json.encode(wish))
        page = decode_body(answer.body, _AcmePage)
        if answer.status != 200 or not self._transport.is_page(page.pay_url):
            raise ProviderFault(FaultKind.MALFORMED, "no page of this charge")
        return HandOff(HandOffKind.REDIRECT, page.pay_url)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        answer = await self._send(charge, "GET", f"/charges/{charge.reference}")
        if answer.status == 404:
            return ProviderReport(charge.reference, Outcome.UNPAID, NO_CHARGE)
        report = report_in(answer.body)
        if report is None:
            raise ProviderFault(FaultKind.MALFORMED, "the answer names no reference")
        return report

    async def _send(self, charge: Charge, method: str, path: str, content: bytes | None = None) -> ProviderAnswer:
        answer = await self.send(charge.credentials, charge.environment, method, path, content)
        if answer.status in FAULTS:
            raise ProviderFault(FAULTS[answer.status])
        return answer
