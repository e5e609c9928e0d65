"""Where the interface says "not shown", the machines assume what payagg does. A service that does otherwise differs
from payagg, and does not break the interface."""

from collections.abc import Mapping

from payagg_testing.conformance.expectation import Expected
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall

OUTCOME = "`outcome` of simulate is SUCCESS, FAILED or REVERSED (--outcome SUCCESS=paid names yours)"
STATUS = "process makes a payment PENDING until its end is known"
CARD = "`cardNumber` of process is one of payagg's test cards (--card 4000000000000002=YOURS names yours)"
PUBLIC = "the payer's detail has `reference`, `amount`, `currency` and `status`"
VERIFIED = "the answer to verify has `status` and `callbackUrl`"
TEST_PAYMENT = "a test payment takes `idempotencyKey`"
NAMES = "`events` of an endpoint are named payment.pending, .success, .failed and .reversed"
SECRET = "the signing secret is `signingSecret` and begins with whsec_"  # noqa: S105 - a sentence
EVENT = "an event has `id`, `type`, `environment` and `data`, and Standard Webhooks headers; its signature is theirs"
INBOUND = "providers' events have the shapes of Paystack's and Payaza's"
KEPT = "for a day after a provider's secret is replaced, the old one proves events, too"
FAILURE = "a provider's event of a failed charge ends its payment as FAILED, and the answer to verify does not"
UNHEALTHY = "a provider that failed five calls in a row is shown unavailable for a while"
ASKED = "a provider whose answer was lost is asked about the charge before another begins"
UNASKED = (
    "verify is refused as GATEWAY_NOT_AVAILABLE while the provider lacks credentials and the payment's end is open"
)
OWN = "a payment's `webhookUrl` receives its events where the business has an endpoint for them"
WHOLE = "an `amount` of 5000.0 has decimals, though JSON need not tell it from 5000"
ASSUMPTIONS = (
    *(OUTCOME, STATUS, CARD, PUBLIC, VERIFIED, TEST_PAYMENT, NAMES, SECRET, EVENT, INBOUND, KEPT, FAILURE),
    *(UNHEALTHY, ASKED, UNASKED, OWN, WHOLE),
)
FORM = ("webhook-timestamp", "does not fit the raw body", "of another shape", "of event")
ABSENT, FORGED = '"absent"', "INVALID_WEBHOOK_SIGNATURE"


def assumption_of(call: ServiceCall, expected: Expected, answer: ServiceAnswer, fault: str) -> str | None:
    """The assumption that the fault contradicts; None where the interface itself foresees something else."""
    body = call.body if isinstance(call.body, Mapping) else {}
    amount = body.get("amount")
    is_refused = answer.status == 400 and answer.code == "VALIDATION_ERROR" and 400 not in expected.statuses
    foreseen = expected.data or {}
    cases: list[tuple[str, bool]] = [
        (OUTCOME, is_refused and call.path.endswith("/simulate")),
        (CARD, is_refused and call.path.endswith("/process") and "cardNumber" in body),
        (NAMES, is_refused and call.path.endswith("/webhooks") and answer.field == "events"),
        (TEST_PAYMENT, call.path.endswith("/test-payment") and "idempotencyKey" in body and answer.status == 201),
        (STATUS, foreseen.get("status") == "PENDING" and fault == 'status is "INITIATED"'),
        (SECRET, fault.startswith("signingSecret is ")),
        (VERIFIED, call.path.endswith("/verify") and fault.endswith(ABSENT)),
        (PUBLIC, call.path.startswith("/public/payments/") and call.path.count("/") == 3 and fault.endswith(ABSENT)),
        (WHOLE, isinstance(amount, float) and amount.is_integer() and answer.status == 201),
        (KEPT, call.event == "replaced secret" and answer.code == FORGED),
        (INBOUND, call.event is not None and answer.status == 400 and answer.code != FORGED),
    ]
    return next((assumption for assumption, is_met in cases if is_met), None)


def form_of_events(fault: str) -> str | None:
    """The assumption, where a fault is of an event's form."""
    return EVENT if any(words in fault for words in FORM) else None
