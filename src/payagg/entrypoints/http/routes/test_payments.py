"""Dashboard test payments: the very use case of initiate, without a key in the browser."""

from typing import Any

from litestar import Request, Response, get, post
from litestar.params import FromPath

from payagg.application.schemas.payments import InitiatedPayment, PaymentDetail, SimulatePayment, TestPayment
from payagg.domain.errors import ErrorCode
from payagg.domain.values import Environment, parse_reference
from payagg.entrypoints.http.auth import manager, services
from payagg.entrypoints.http.routes.payments import initiated, keyed
from payagg.entrypoints.http.wire import decoded, describe, envelope

TAG = "Test payments"
BASE = "/merchant/businesses/{business_id:str}/test-payment"


@post(
    BASE,
    opt=describe(
        "createTestPayment",
        "Create a sandbox payment",
        TAG,
        body=TestPayment,
        returns=InitiatedPayment,
        status=201,
        replay_status=200,
        errors=(ErrorCode.BUSINESS_RESTRICTED, ErrorCode.NO_SANDBOX_KEY, ErrorCode.DUPLICATE_PAYMENT),
    ),
)
async def create(request: Request[Any, Any, Any], business_id: FromPath[str]) -> Response[bytes]:
    who = await manager(request, business_id, changes=True)
    command = keyed(request, await decoded(request, TestPayment))
    return initiated(request, await services(request).payments.initiate_test(command, who.business))


@get(
    BASE + "/{reference:str}",
    opt=describe(
        "getTestPayment", "Read a test payment", TAG, returns=PaymentDetail, errors=(ErrorCode.PAYMENT_NOT_FOUND,)
    ),
)
async def read(
    request: Request[Any, Any, Any], business_id: FromPath[str], reference: FromPath[str]
) -> Response[bytes]:
    who = await manager(request, business_id, changes=False)
    held = services(request)
    parse_reference(reference, held.settings.reference_prefix)
    return envelope(await held.payments.read(reference, who.business.id, Environment.SANDBOX))


@post(
    BASE + "/{reference:str}/simulate",
    opt=describe(
        "simulateTestPayment",
        "Simulate the outcome of a test payment",
        TAG,
        body=SimulatePayment,
        returns=PaymentDetail,
        errors=(ErrorCode.BUSINESS_RESTRICTED, ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.PAYMENT_ALREADY_FINAL),
    ),
)
async def simulate(
    request: Request[Any, Any, Any], business_id: FromPath[str], reference: FromPath[str]
) -> Response[bytes]:
    who = await manager(request, business_id, changes=True)
    held = services(request)
    parse_reference(reference, held.settings.reference_prefix)
    command = await decoded(request, SimulatePayment)
    return envelope(await held.payments.simulate(reference, command.outcome, who.business.id, who.actor))


routes = [create, read, simulate]
