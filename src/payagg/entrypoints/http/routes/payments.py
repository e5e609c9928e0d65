"""Payments with a secret key: context, initiate, read, simulate."""

from typing import Any, TypeVar

import structlog
from litestar import Request, Response, get, post
from litestar.params import FromPath
from msgspec.structs import replace

from payagg.application.api_keys import ApiKeyContext, context_of
from payagg.application.counters import count
from payagg.application.payments import Initiation
from payagg.application.schemas.payments import (
    InitiatedPayment,
    InitiatePayment,
    PaymentDetail,
    SimulatePayment,
    TestPayment,
)
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.payment import IDEMPOTENCY_KEY_MAX
from payagg.domain.values import parse_reference
from payagg.entrypoints.http.auth import accepted_key, sandbox_key, secret_key, services
from payagg.entrypoints.http.middleware import note_reference
from payagg.entrypoints.http.wire import decoded, describe, envelope

TAG = "Payments"
Keyed = TypeVar("Keyed", InitiatePayment, TestPayment)
_log = structlog.get_logger("payagg.http")


@get(
    "/payments/context",
    opt=describe("getPaymentContext", "Show what the presented key stands for", TAG, returns=ApiKeyContext),
)
async def context(request: Request[Any, Any, Any]) -> Response[bytes]:
    return envelope(context_of(await secret_key(request)))


@post(
    "/payments/initiate",
    opt=describe(
        "initiatePayment",
        "Initiate a payment",
        TAG,
        body=InitiatePayment,
        returns=InitiatedPayment,
        status=201,
        replay_status=200,
        errors=(
            ErrorCode.GATEWAY_NOT_FOUND,
            ErrorCode.GATEWAY_DISABLED,
            ErrorCode.DUPLICATE_PAYMENT,
            ErrorCode.NO_GATEWAY_AVAILABLE,
        ),
        description="The key decides the environment. The processor is not contacted.",
    ),
)
async def initiate(request: Request[Any, Any, Any]) -> Response[bytes]:
    payments = services(request).payments
    believed = accepted_key(request)
    holder = believed or await secret_key(request)
    try:
        command = keyed(request, await decoded(request, InitiatePayment))
    except Refusal:
        if believed is not None:
            await secret_key(request)  # whose refusals come before the body's
        raise
    if believed is not None:
        # One round trip for the most frequent request: the payment is added only while the key stands as remembered.
        created = await payments.initiate_believing(command, believed)
        if created is not None:
            return initiated(request, created)
        holder = await secret_key(request)
    return initiated(request, await payments.initiate(command, holder.business, holder.key.environment))


@get(
    "/payments/{reference:str}",
    opt=describe("getPayment", "Read a payment", TAG, returns=PaymentDetail, errors=(ErrorCode.PAYMENT_NOT_FOUND,)),
)
async def read(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
    held = services(request)
    believed = accepted_key(request)
    if believed is not None:
        # One round trip here too: the payment comes together with the proof that the key stands as remembered.
        found = await held.payments.read_believing(reference, believed)
        if found is not None:
            return envelope(found)
    holder = await secret_key(request)
    parse_reference(reference, held.settings.reference_prefix)
    return envelope(await held.payments.read(reference, holder.business.id, holder.key.environment))


@post(
    "/payments/{reference:str}/simulate",
    opt=describe(
        "simulatePayment",
        "Simulate the outcome of a sandbox payment",
        TAG,
        body=SimulatePayment,
        returns=PaymentDetail,
        errors=(ErrorCode.SANDBOX_ONLY, ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.PAYMENT_ALREADY_FINAL),
    ),
)
async def simulate(request: Request[Any, Any, Any], reference: FromPath[str]) -> Response[bytes]:
    holder = await sandbox_key(request)
    held = services(request)
    parse_reference(reference, held.settings.reference_prefix)
    command = await decoded(request, SimulatePayment)
    actor = f"key:{holder.key.id}"
    return envelope(await held.payments.simulate(reference, command.outcome, holder.business.id, actor))


def keyed(request: Request[Any, Any, Any], command: Keyed) -> Keyed:
    """The command with its idempotency key, which the header `Idempotency-Key` may carry instead of the field."""
    values = [value for name, value in request.scope["headers"] if name == b"idempotency-key"]
    if not values:
        return command
    try:
        key = values[0].decode()
    except UnicodeDecodeError:
        raise invalid("idempotencyKey", "The header must be valid UTF-8.") from None
    if len(values) > 1 or not 1 <= len(key) <= IDEMPOTENCY_KEY_MAX:
        raise invalid("idempotencyKey", f"The header must appear once, with 1 to {IDEMPOTENCY_KEY_MAX} characters.")
    if command.idempotency_key not in (None, key):
        raise invalid("idempotencyKey", "The header and the field differ.")
    return replace(command, idempotency_key=key)


def initiated(request: Request[Any, Any, Any], done: Initiation) -> Response[bytes]:
    """201 for a new payment, 200 for a replay, which two headers make visible."""
    note_reference(request, done.payment.reference)
    if done.created:
        return envelope(done.payment, 201)
    headers = {"Idempotency-Replayed": "true"}
    if done.mismatch:
        headers["Idempotency-Mismatch"] = "true"
        count("idempotency_mismatches")
        _log.warning("idempotency key reused with another body", reference=done.payment.reference)
    return envelope(done.payment, 200, headers)


routes = [context, initiate, read, simulate]
