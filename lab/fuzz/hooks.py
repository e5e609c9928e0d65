"""What Schemathesis cannot read from the description: how providers sign, and rules that no schema can state."""

import base64
import hashlib
import hmac
from typing import Any

import requests
import schemathesis
from schemathesis.core.failures import Failure

from lab.fuzz.run import SIGNING_SECRETS
from payagg.entrypoints.http.docs.reference import CODES
from tests.support.answers.crawler import leaks
from tests.support.answers.recorder import Answer

# Operations, and the gateways they are led away from: providers must work until the end of the run.
SPARED = {
    "updateGatewayCredentials": "gw_provider_",
    "disableGateway": "gw_provider_a",
    "deleteGateway": "gw_provider_",
}

# JSON Schema counts 100.0 among the integers, and knows no word against NUL in a key: money and Postgres are stricter.
WORDS = {
    "Must be an integer.",
    "Must be an integer number of kobo: 150050 is ₦1,500.50.",
    "Keys must not hold NUL or lone surrogates.",
    "Must not hold NUL or lone surrogates.",
}
LISTS = """
exportAllPayments exportBusinessPayments exportPayments getAllPaymentsSummary getAllPaymentsSummaryCsv
getBusinessPaymentSummary getBusinessPaymentSummaryCsv getPaymentSummary getPaymentSummaryCsv listAllPayments listAudit
listBusinessAudit listBusinessPayments listPayments
"""
# Fields whose data may fit its schema and be refused with VALIDATION_ERROR, by operation. Any other is a finding.
FIELDS: dict[str, str] = {
    # Of the built-in gateway only the order may change.
    "updateGateway": "name description",
    # What makes a picture is not for a schema to say.
    "uploadGatewayLogo": "file",
    # The built-in gateway is neither switched off nor moved; only an enabled gateway can be the default.
    "updateBusinessGateway": "isEnabled displayOrder isDefault",
    # Every gateway must be active and named once.
    "reorderBusinessGateways": "order",
    # Addresses are stricter than their formats, metadata has depth and bytes, and the header may differ from the field.
    "initiatePayment": "customerEmail callbackUrl webhookUrl metadata idempotencyKey",
    "createTestPayment": "customerEmail callbackUrl metadata idempotencyKey",
    # Any slug and any text fit the schema; only known gateways and test cards are taken.
    "processPayment": "gatewaySlug cardNumber",
    # HTTPS for LIVE, and URLs are stricter than their format.
    "createWebhook": "url",
    "updateWebhook": "url",
    # An endpoint that is off receives nothing.
    "redeliverWebhook": "endpointId",
    "redeliverToPayment": "reference",
    # Years begin at 1, a time ends after it begins, a cursor is an answer's, an administrator's key needs its business.
    **dict.fromkeys(LISTS.split(), "from to after businessId email customerEmail"),
    # A log is walked by cursor or by number.
    "listWebhookDeliveries": "page perPage",
    # Underscores are a provider's.
    "createGateway": "slug",
    # Names and subjects are printable, and KYC moves as its machine says.
    "createBusiness": "name owner",
    "updateBusiness": "kycStatus",
    "setBusinessMember": "subject",
    "assignAnomaly": "assignee",
    "removeBusinessMember": "subject",
}
# Other refusals, by operation: code and field.
REFUSALS: dict[str, set[tuple[str, str | None]]] = {
    "testGatewayCredentials": {("GATEWAY_ENVIRONMENT_NOT_CONFIGURED", None)},
    "initiatePayment": {("GATEWAY_NOT_FOUND", "gateway")},
    "createTestPayment": {("NO_SANDBOX_KEY", None)},
    "processPayment": {
        ("GATEWAY_NOT_AVAILABLE", "gatewaySlug"),
        ("GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug"),
        ("PAYMENT_EXPIRED", None),
    },
    # A signed body that is no event.
    "receiveProviderASandboxEvent": {("VALIDATION_ERROR", None)},
    "receiveProviderALiveEvent": {("VALIDATION_ERROR", None)},
    "receiveProviderAEvent": {("VALIDATION_ERROR", None)},
}
# What is created does not hold what the body names: operation and message of a 404 that is right.
ABSENT = {("removeBusinessMember", "No such member.")}


@schemathesis.check
def nothing_leaks(context: Any, response: Any, case: Any) -> None:
    """What the crawler asks of the tests' answers, but for card numbers: those the fuzzer makes up, as names."""
    media_type = response.headers.get("content-type", [""])[0].partition(";")[0]
    answer = Answer(case.method, case.path, response.status_code, media_type, response.content, "")
    found = [leak for leak in leaks(answer) if "a card number" not in leak]
    assert not found, found


@schemathesis.check
def every_code_is_described(context: Any, response: Any, case: Any) -> None:
    """The schema of failures is one for all; which codes an operation may answer stands beside it."""
    described = case.operation.definition.raw["responses"].get(str(response.status_code), {})
    if CODES in described:
        assert response.json()["error"]["code"] in described[CODES], response.text


@schemathesis.hook
def filter_failure(context: Any, failure: Failure, case: Any, response: Any) -> bool:
    """Drops a refusal of valid data that a rule explains, and nothing else."""
    if "ensure_resource_availability" in failure.checks:
        return (_id_of(case), response.json()["error"]["message"]) not in ABSENT
    if "positive_data_acceptance" not in failure.checks:
        return True
    error, operation = response.json()["error"], _id_of(case)
    code, field = error["code"], error.get("field")
    is_of_field = code == "VALIDATION_ERROR" and field in FIELDS.get(operation, "").split()
    return error["message"] not in WORDS and not is_of_field and (code, field) not in REFUSALS.get(operation, set())


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Keeps the providers working and signs events; what a signature covers is known only when the request is ready."""
    spared = SPARED.get(_id_of(case))
    if spared is not None and str(case.path_parameters.get("gatewayId", "")).startswith(spared):
        case.path_parameters["gatewayId"] = "gw_builtin"
    if case.path.startswith("/webhooks/") and case.meta is not None and case.meta.generation.mode.is_positive:
        kwargs["auth"] = Signature()


class Signature(requests.auth.AuthBase):
    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body = request.body or b""
        assert isinstance(body, bytes | str), "a streamed body cannot be signed"
        raw = body.encode() if isinstance(body, str) else body
        environment = "sandbox" if "/sandbox" in (request.url or "") else "live"
        digest = hmac.new(SIGNING_SECRETS[environment].encode(), raw, hashlib.sha512)
        request.headers["x-provider_a-signature"] = digest.hexdigest()
        request.headers["x-provider_b-signature"] = base64.b64encode(digest.digest()).decode()
        return request


def _id_of(case: Any) -> str:
    return str(case.operation.definition.raw["operationId"])
