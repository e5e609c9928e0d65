"""The hosted checkout's operations: no credential, so nothing but payer-safe fields and a limit on guessing."""

from collections.abc import Awaitable
from typing import Any, TypeVar

from litestar import Request, Response, get, post
from litestar.params import FromPath

from payagg.application.schemas.payments import (
    CheckoutGateways,
    ProcessedPayment,
    ProcessPayment,
    PublicPaymentDetail,
    VerifiedPayment,
)
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import parse_reference
from payagg.entrypoints.http.auth import services
from payagg.entrypoints.http.rate_limits import Limit, client_address
from payagg.entrypoints.http.wire import decoded, describe, envelope

TAG = "Hosted checkout"
T = TypeVar("T")
UNKNOWN = (ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.RATE_LIMITED)


@get(
    "/public/payments/{reference:str}",
    opt=describe("getPublicPayment", "Show a payment to its payer", TAG, returns=PublicPaymentDetail, errors=UNKNOWN),
)
async def detail(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
    known = named(request, reference)
    return envelope(await found(request, services(request).checkout.detail(known)))


@get(
    "/public/payments/{reference:str}/gateways",
    opt=describe("listPaymentOptions", "List the payment's options", TAG, returns=CheckoutGateways, errors=UNKNOWN),
)
async def options(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
    known = named(request, reference)
    return envelope(await found(request, services(request).checkout.options(known)))


@post(
    "/public/payments/{reference:str}/process",
    opt=describe(
        "processPayment",
        "Choose a gateway and start the charge",
        TAG,
        body=ProcessPayment,
        returns=ProcessedPayment,
        errors=(
            *UNKNOWN,
            ErrorCode.GATEWAY_NOT_AVAILABLE,
            ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED,
            ErrorCode.PAYMENT_ALREADY_PROCESSED,
            ErrorCode.PAYMENT_EXPIRED,
        ),
        description="A repeat returns the existing hand-off and starts no second charge.",
    ),
)
async def process(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
    known = named(request, reference)
    command = await decoded(request, ProcessPayment)
    return envelope(await found(request, services(request).checkout.process(known, command)))


@get(
    "/public/payments/{reference:str}/verify",
    opt=describe(
        "verifyPayment",
        "Ask the provider and show the status",
        TAG,
        returns=VerifiedPayment,
        errors=(*UNKNOWN, ErrorCode.GATEWAY_NOT_AVAILABLE, ErrorCode.PAYMENT_AMOUNT_MISMATCH),
    ),
)
async def verify(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
    known = named(request, reference)
    return envelope(await found(request, services(request).verification.verify(known)))


def named(request: Request[Any, Any, Any], reference: str) -> str:
    """The well-formed reference; raises INVALID_REFERENCE, or RATE_LIMITED for an address that has been guessing."""
    parse_reference(reference, services(request).settings.reference_prefix)
    _guesses(request).ensure_open(client_address(request))
    return reference


async def found(request: Request[Any, Any, Any], answer: Awaitable[T]) -> T:
    """The answer; an unknown reference counts against the client, so that references cannot be guessed."""
    try:
        return await answer
    except Refusal as refusal:
        if refusal.code is ErrorCode.PAYMENT_NOT_FOUND:
            await _guesses(request).hit(client_address(request))
        raise


def _guesses(request: Request[Any, Any, Any]) -> Limit:
    limit: Limit = request.app.state.unknown_references
    return limit


routes = [detail, options, process, verify]
