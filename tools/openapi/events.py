"""The `webhooks` section: the events sent to merchants, their headers and an example of each."""

from typing import Any

from payagg.domain.webhook import TEST_EVENT, EventType
from tools.openapi.components import JSON, REF

TAG = "Events"
MEANINGS = {
    EventType.PAYMENT_PENDING.value: "The payer went to a provider.",
    EventType.PAYMENT_SUCCESS.value: "The payer paid.",
    EventType.PAYMENT_FAILED.value: "The payment failed or expired; `failureReason` says which.",
    EventType.PAYMENT_REVERSED.value: "The payment was reversed.",
    EventType.PAYMENT_LATE_SUCCESS.value: "The payer paid after the end, or paid twice; the status stays.",
    EventType.PAYMENT_REFUNDED.value: "The provider refunded all or part of it; the status stays.",
    EventType.PAYMENT_DISPUTED.value: "The payer disputes it, or the dispute has ended; the status stays.",
    EventType.PAYMENT_ATTENTION.value: "Wrong money came, or nobody can say whether any came: a person must look. "
    "The status stays.",
    TEST_EVENT: "Only a test call sends it; it is about no payment.",
}
# Components, because OpenAPI Generator loses the type of a header that is described within this section.
SCHEMAS: dict[str, Any] = {
    "WebhookId": {"type": "string", "minLength": 36, "maxLength": 36, "pattern": "^evt_[0-9a-f]{32}$"},
    "WebhookTimestamp": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**53 - 1},
    "WebhookSignature": {
        "type": "string",
        "maxLength": 512,
        "pattern": "^v1,[A-Za-z0-9+/=]{44}(?: v1,[A-Za-z0-9+/=]{44})*$",
        "examples": ["v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="],
    },
}
HEADERS = (
    ("webhook-id", "WebhookId", "The event's id, the same in every attempt: skip an event that you have handled."),
    ("webhook-timestamp", "WebhookTimestamp", "Unix seconds of this attempt: refuse a difference over five minutes."),
    ("webhook-signature", "WebhookSignature", "HMAC-SHA256 of `id.timestamp.body`; one match is enough."),
    ("X-Service-Signature", "WebhookSignature", "The same value as `webhook-signature`."),
)
SIGNED = [
    {
        "name": name,
        "in": "header",
        "required": True,
        "description": words,
        "schema": {"$ref": REF.format(name=schema)},
    }
    for name, schema, words in HEADERS
]


def webhooks() -> dict[str, Any]:
    """By event type."""
    return {kind: {"post": _delivery(kind, meaning)} for kind, meaning in MEANINGS.items()}


def _delivery(kind: str, meaning: str) -> dict[str, Any]:
    body = "TestBody" if kind == TEST_EVENT else "EventBody"
    words = kind.replace("_", ".").split(".")
    return {
        "operationId": "on" + "".join(word.title() for word in words),
        "summary": f"`{kind}`",
        "description": f"{meaning} Verify the signature over the raw body, answer any 2xx within 15 seconds, and do "
        "the work afterwards. Events may come twice or out of order.",
        # A tag of its own: generators put each tag's operations into one file, and these are the merchant's to answer.
        "tags": [TAG],
        "security": [{}],
        "parameters": SIGNED,
        "requestBody": {"required": True, "content": {JSON: {"schema": {"$ref": REF.format(name=body)}}}},
        "responses": {
            "2XX": {"description": "Received. The body is not read."},
            "410": {"description": "Switches the endpoint off."},
            "429": {"description": "Tried again later; `Retry-After` is heeded within bounds."},
            "default": {"description": "Tried again by the schedule."},
        },
    }
