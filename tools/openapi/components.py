"""The components outside routes: credentials, headers and tags."""

from typing import Any, Final

REF: Final = "#/components/schemas/{name}"
JSON: Final = "application/json"
# The tags in the order in which a newcomer reads them, with what each is for.
TAGS: Final[dict[str, str]] = {
    "Payments": "A merchant's server initiates a payment and reads its result, with a secret key.",
    "Payment search": "Lists, sums and exports of payments, for reconciling.",
    "Hosted checkout": "The calls of the hosted page: show a payment, choose an option, verify. No credential.",
    "Webhooks": "The endpoints that receive a business's events, their delivery logs, and past events.",
    "Events": "The events that payagg sends to a business's endpoints: one signed `POST` for each.",
    "API keys": "The secret keys of a business; a secret is shown once.",
    "Test payments": "Sandbox payments from a dashboard, without a secret key.",
    "Businesses": "The businesses that the user manages.",
    "Merchant gateways": "Which payment options a business offers, under which name and in which order.",
    "Public": "No credential needed.",
    "Admin gateways": "The platform's gateways: status, credentials and logos.",
    "Admin businesses": "Businesses, their KYC and status, and their members.",
    "Anomalies": "Facts about money that changed no payment, and wait for a person.",
    "Reconciliations": "Providers' own lists compared with our payments: counts, sums and differences.",
    "Health": "How late the queues are, and what waits for a person.",
    "Audit": "Who changed what, newest first.",
    "Inbound provider webhooks": "The addresses for providers' events; a signature proves each event.",
}
SECURITY_SCHEMES: Final = {
    "adminBearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT (RFC7519, used as RFC8725 advises) with `sub`, `exp`, `type: admin` and `role`: "
        "SUPER_ADMIN or ADMIN, or SUPPORT for reads.",
    },
    "merchantBearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT (RFC7519, used as RFC8725 advises) with `sub`, `exp`, `type: merchant` and "
        "`emailVerified: true`. The user must be OWNER or ADMIN of the business in the path.",
    },
    "secretKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "`ssk_sand_...` or `ssk_live_...`; the key selects the environment.",
    },
}
HEADERS: Final[dict[str, Any]] = {
    "X-Request-Id": {
        "description": "Names this request in our logs; a valid `X-Request-Id` of the caller is kept.",
        "schema": {"type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9._-]{8,64}$"},
    },
    "Link": {
        "description": "Where the documentation says what to do about the code.",
        "schema": {
            "type": "string",
            "maxLength": 256,
            "pattern": '^</docs/errors#[a-z_]+>; rel="help"$',
        },
    },
    "Retry-After": {
        "description": "Seconds to wait before another try.",
        "schema": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 86400},
    },
    "RateLimit": {
        "description": "For each limit: how much is left (`r`), and the seconds until it is full again or, on a 429 "
        "without a policy, until the next request may come (`t`).",
        "schema": {
            "type": "string",
            "maxLength": 256,
            "pattern": '^"[a-z]+";r=[0-9]+;t=[0-9]+(?:, "[a-z]+";r=[0-9]+;t=[0-9]+)*$',
        },
    },
    "RateLimit-Policy": {
        "description": "For each limit: how many requests (`q`) may come at once, and again in how many seconds (`w`); "
        "each server process counts for itself.",
        "schema": {
            "type": "string",
            "maxLength": 256,
            "pattern": '^"[a-z]+";q=[0-9]+;w=[0-9]+(?:, "[a-z]+";q=[0-9]+;w=[0-9]+)*$',
        },
    },
    "Access-Control-Allow-Origin": {
        "description": "The caller's origin, if the deployment allows its scripts to read responses; otherwise this "
        "service's own origin.",
        "schema": {"type": "string", "format": "uri", "maxLength": 2048},
    },
    "Idempotency-Replayed": {
        "description": "Present on a replay: the payment existed already.",
        "schema": {"type": "string", "const": "true"},
    },
    "Credentials-Removed": {
        "description": "Present when stored names were removed: those of them that a header can carry.",
        "schema": {
            "type": "string",
            "maxLength": 3300,
            "pattern": "^[A-Za-z0-9._-]{1,64}(?:, [A-Za-z0-9._-]{1,64})*$",
            "examples": ["liveSecretKey, liveWebhookSecret"],
        },
    },
    "Open-Attempts": {
        "description": "Present when the provider account or its address was replaced while attempts at it are still "
        "checked: how many, counted up to 1,000.",
        "schema": {"type": "string", "maxLength": 4, "pattern": "^[1-9][0-9]{0,3}$", "examples": ["12"]},
    },
    "Idempotency-Mismatch": {
        "description": "Present when the key came with another body than the first time.",
        "schema": {"type": "string", "const": "true"},
    },
    "Webhook-Url-Warning": {
        "description": "Present when nothing can be sent to `webhookUrl`: events are signed with the secrets of the "
        "business's active endpoints in this environment, and there is none.",
        "schema": {"type": "string", "const": "no-active-endpoint"},
    },
}
ON_EVERY_ANSWER: Final = ("X-Request-Id", "Access-Control-Allow-Origin", "RateLimit", "RateLimit-Policy")
IDEMPOTENCY_KEY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same as the field `idempotencyKey`.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[\\x21-\\x7e]+$",
        "examples": ["order-1001"],
    },
}


def headers(*names: str) -> dict[str, Any]:
    """References to the headers of every answer and to those of `names`."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*ON_EVERY_ANSWER, *names)}
