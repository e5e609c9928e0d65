"""The one catalogue of refusals: every code a caller can meet, with its kind and its default words."""

from enum import Enum, unique
from typing import TypeVar

T = TypeVar("T")


@unique
class Kind(Enum):
    """The kind of refusal, in order of precedence; only the HTTP layer maps a kind to a status number."""

    MISDIRECTED = "misdirected"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    TOO_LARGE = "too large"
    MISSING = "missing"
    WRONG_METHOD = "wrong method"
    CONFLICT = "conflict"
    GONE = "gone"
    THROTTLED = "throttled"
    UPSTREAM = "upstream"
    UNAVAILABLE = "unavailable"
    FAULT = "fault"


@unique
class ErrorCode(Enum):
    """A code of the error envelope. Declared in order of precedence; the source is the interface's Errors table."""

    MISDIRECTED_REQUEST = Kind.MISDIRECTED, "Another cell has this now: `X-Payagg-Cell` names it."
    UNAUTHORIZED = Kind.UNAUTHENTICATED, "A valid bearer credential is required."
    INVALID_API_KEY = Kind.UNAUTHENTICATED, "The API key is malformed, revoked or unknown."
    FORBIDDEN = Kind.FORBIDDEN, "This credential may not do that."
    EMAIL_NOT_VERIFIED = Kind.FORBIDDEN, "Verify the user's email address first."
    SANDBOX_ONLY = Kind.FORBIDDEN, "Only a sandbox key may simulate an outcome."
    BUSINESS_RESTRICTED = Kind.FORBIDDEN, "The business is not active."
    KYC_REQUIRED = Kind.FORBIDDEN, "Live keys need an approved KYC."
    INVALID_REFERENCE = Kind.INVALID, "The reference is not in the required form."
    VALIDATION_ERROR = Kind.INVALID, "The input is invalid."
    INVALID_WEBHOOK_SIGNATURE = Kind.INVALID, "The webhook signature is missing or does not match."
    NO_SANDBOX_KEY = Kind.INVALID, "The business has no active sandbox key."
    GATEWAY_NOT_FOUND = Kind.INVALID, "The gateway is unknown or takes no new payments."
    GATEWAY_DISABLED = Kind.INVALID, "The business has turned this gateway off."
    GATEWAY_NOT_AVAILABLE = Kind.INVALID, "The selected gateway cannot be used."
    GATEWAY_ENVIRONMENT_NOT_CONFIGURED = Kind.INVALID, "The provider is not configured for this environment."
    PAYLOAD_TOO_LARGE = Kind.TOO_LARGE, "The request body is too large."
    NOT_FOUND = Kind.MISSING, "There is nothing here by that name."
    PAYMENT_NOT_FOUND = Kind.MISSING, "No such payment."
    METHOD_NOT_ALLOWED = Kind.WRONG_METHOD, "This path does not answer that method."
    DUPLICATE_PAYMENT = Kind.CONFLICT, "The idempotency key belongs to a completed payment."
    PAYMENT_ALREADY_FINAL = Kind.CONFLICT, "The payment is already completed."
    PAYMENT_ALREADY_PROCESSED = Kind.CONFLICT, "The payment has already been processed."
    KEY_LIMIT_REACHED = Kind.CONFLICT, "Five active keys already exist for this environment."
    API_KEY_ALREADY_REVOKED = Kind.CONFLICT, "The API key is already revoked."
    WEBHOOK_LIMIT_REACHED = Kind.CONFLICT, "The business already has five active webhook endpoints."
    GATEWAY_SLUG_EXISTS = Kind.CONFLICT, "A gateway with this slug already exists."
    GATEWAY_BUILT_IN = Kind.CONFLICT, "The built-in gateway cannot be disabled or deleted."
    GATEWAY_ALREADY_ENABLED = Kind.CONFLICT, "The gateway is already enabled."
    GATEWAY_NOT_ACTIVE = Kind.CONFLICT, "The gateway is not currently active."
    GATEWAY_IN_USE = Kind.CONFLICT, "Disable the gateway and let it drain before deleting it."
    ANOMALY_NOT_OPEN = Kind.CONFLICT, "The anomaly is acknowledged or closed already."
    ANOMALY_ALREADY_CLOSED = Kind.CONFLICT, "The anomaly is closed already."
    NOTE_LIMIT_REACHED = Kind.CONFLICT, "The anomaly has fifty notes already."
    RESOLUTION_NOT_ALLOWED = (
        Kind.CONFLICT,
        "The payment is not past `expiresAt`, or has no anomaly.",
    )
    RESOLUTION_ALREADY_REQUESTED = Kind.CONFLICT, "A request to end this payment waits for its confirmation already."
    RESOLUTION_NOT_REQUESTED = Kind.CONFLICT, "No request waits for a confirmation; one ends after 24 hours."
    SECOND_ADMINISTRATOR_REQUIRED = Kind.CONFLICT, "Another administrator than the one who asked must confirm."
    LAST_OWNER = Kind.CONFLICT, "A business keeps at least one OWNER."
    PAYMENT_EXPIRED = Kind.GONE, "The checkout window has closed."
    RATE_LIMITED = Kind.THROTTLED, "Too many requests; try again later."
    PAYMENT_AMOUNT_MISMATCH = Kind.UPSTREAM, "The provider's details differ from the payment."
    NO_GATEWAY_AVAILABLE = Kind.UNAVAILABLE, "No gateway can take this payment now."
    PROVIDER_NOT_CONFIGURED = Kind.UNAVAILABLE, "The provider is not configured."
    SERVICE_UNAVAILABLE = Kind.UNAVAILABLE, "The service is briefly unavailable; try again."
    INTERNAL_ERROR = Kind.FAULT, "Something went wrong on our side."

    @property
    def kind(self) -> Kind:
        return self.value[0]

    @property
    def message(self) -> str:
        return self.value[1]


class Refusal(Exception):
    """The only exception a rule raises: a code, words for a person, and the JSON name of the offending input.

    `retry_after` is in seconds and becomes the `Retry-After` header; `cell` names the cell to ask instead and becomes
    `X-Payagg-Cell`.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        field: str | None = None,
        retry_after: int | None = None,
        cell: str | None = None,
    ) -> None:
        super().__init__(code.name)
        self.code = code
        self.message = message or code.message
        self.field = field
        self.retry_after = retry_after
        self.cell = cell


def invalid(field: str, message: str) -> Refusal:
    """A VALIDATION_ERROR that names the input by its JSON name, for example `order[0].gatewayId`."""
    return Refusal(ErrorCode.VALIDATION_ERROR, message, field)


def must_exist(one: T | None, message: str | None = None, code: ErrorCode = ErrorCode.NOT_FOUND) -> T:
    """The thing that a request names; raises `code` for None."""
    if one is None:
        raise Refusal(code, message)
    return one


def misdirected_refusal(cell: str, message: str | None = None) -> Refusal:
    """The refusal for what another cell has: nothing was done, and `cell` names the cell to ask."""
    return Refusal(ErrorCode.MISDIRECTED_REQUEST, message, cell=cell)
