"""What a caller does about each refusal, in one sentence: for docs/errors.md and whoever reads it at night."""

from typing import Final

from payagg.domain.errors import ErrorCode

_AGAIN = "Wait for the seconds of `Retry-After`, then send the same request with the same idempotency key."
REMEDIES: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNAUTHORIZED: "Send `Authorization: Bearer` with a token that has not expired.",
    ErrorCode.INVALID_API_KEY: "Use the secret key as it was shown, or generate a new one.",
    ErrorCode.FORBIDDEN: "Use the credential of this realm; business routes need an OWNER or ADMIN of the business.",
    ErrorCode.EMAIL_NOT_VERIFIED: "Let the user verify the address, then sign in anew for a fresh token.",
    ErrorCode.SANDBOX_ONLY: "Use an `ssk_sand_` key; a live payment ends by its provider alone.",
    ErrorCode.BUSINESS_RESTRICTED: "Ask the platform why the business is restricted; repeating does not help.",
    ErrorCode.KYC_REQUIRED: "Finish KYC first; the sandbox works meanwhile.",
    ErrorCode.INVALID_REFERENCE: "Send the reference as initiate gave it: `PAY-20250131-7K2M9X`.",
    ErrorCode.VALIDATION_ERROR: "Correct the input that `field` names; `message` says what it must be.",
    ErrorCode.INVALID_WEBHOOK_SIGNATURE: "Sign the raw body with the secret on file for this environment.",
    ErrorCode.NO_SANDBOX_KEY: "Generate a sandbox key for the business first.",
    ErrorCode.GATEWAY_NOT_FOUND: "Leave `gateway` out and let the payer choose, or name an active one.",
    ErrorCode.GATEWAY_DISABLED: "Switch the gateway on in the checkout settings, or leave `gateway` out.",
    ErrorCode.GATEWAY_NOT_AVAILABLE: "Offer another of the payment's options.",
    ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED: "Offer another option; an administrator stores the credentials.",
    ErrorCode.PAYLOAD_TOO_LARGE: "Send less: JSON up to 64 KB, a logo up to 2 MB.",
    ErrorCode.NOT_FOUND: "Check the path and the id; another business's things are never found.",
    ErrorCode.PAYMENT_NOT_FOUND: "Check the reference and that the key is of its business and environment.",
    ErrorCode.METHOD_NOT_ALLOWED: "Use the method that the API reference names.",
    ErrorCode.DUPLICATE_PAYMENT: "Read the payment that holds the key; a new attempt needs a new key.",
    ErrorCode.PAYMENT_ALREADY_FINAL: "Read the payment: it has its final status.",
    ErrorCode.PAYMENT_ALREADY_PROCESSED: "Show the payment's final status to the payer.",
    ErrorCode.KEY_LIMIT_REACHED: "Revoke a key that is no longer used.",
    ErrorCode.API_KEY_ALREADY_REVOKED: "Nothing: the key no longer works.",
    ErrorCode.WEBHOOK_LIMIT_REACHED: "Deactivate an endpoint that is no longer used.",
    ErrorCode.GATEWAY_SLUG_EXISTS: "Choose another slug.",
    ErrorCode.GATEWAY_BUILT_IN: "Nothing: the built-in gateway stays; only its order may change.",
    ErrorCode.GATEWAY_ALREADY_ENABLED: "Nothing: it is enabled.",
    ErrorCode.GATEWAY_NOT_ACTIVE: "Nothing: it is draining or off.",
    ErrorCode.GATEWAY_IN_USE: "Disable it, wait for its drain to end, then delete it.",
    ErrorCode.ANOMALY_NOT_OPEN: "See who acknowledged or closed it.",
    ErrorCode.ANOMALY_ALREADY_CLOSED: "See who closed it, and why.",
    ErrorCode.LAST_OWNER: "Make somebody else an OWNER first.",
    ErrorCode.PAYMENT_EXPIRED: "Initiate a new payment; a link lives one hour.",
    ErrorCode.RATE_LIMITED: _AGAIN,
    ErrorCode.PAYMENT_AMOUNT_MISMATCH: "Do not deliver; an administrator looks into the anomaly.",
    ErrorCode.NO_GATEWAY_AVAILABLE: "Switch a gateway on, or try later.",
    ErrorCode.PROVIDER_NOT_CONFIGURED: "An administrator stores the provider's credentials; the provider tries again.",
    ErrorCode.SERVICE_UNAVAILABLE: _AGAIN,
    ErrorCode.INTERNAL_ERROR: "Send it again with the same idempotency key; report the `X-Request-Id` if it stays.",
}
