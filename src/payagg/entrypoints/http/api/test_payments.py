"""Dashboard test payments: the use case of initiate, without a key in the browser."""

from litestar import Response

from payagg.application.accounts.access import Manager
from payagg.application.schemas.payments import InitiatedPayment, PaymentDetail, SimulatePayment, TestPayment
from payagg.domain.errors import ErrorCode
from payagg.domain.values import Environment
from payagg.entrypoints.http.api.auth import by, manager_changes, manager_reads
from payagg.entrypoints.http.api.payments import initiate_response
from payagg.entrypoints.http.server.routing import KB, Call, route

TAG = "Test payments"
BASE = "/merchant/businesses/{business_id:str}/test-payment"
ONE = BASE + "/{reference:str}"


@route(
    "POST",
    BASE,
    "createTestPayment",
    "Create a sandbox payment",
    TAG,
    guard=manager_changes,
    body_max=64 * KB,
    returns=InitiatedPayment,
    status=201,
    replay_status=200,
    errors=(ErrorCode.NO_SANDBOX_KEY, ErrorCode.DUPLICATE_PAYMENT),
)
async def create_test_payment(call: Call[Manager, TestPayment]) -> Response[bytes]:
    done = await call.services.payments.initiate_test(call.body, call.caller.business, by=by(call))
    return initiate_response(call.request, done)


@route(
    "GET", ONE, "getTestPayment", "Read a test payment", TAG, guard=manager_reads, errors=(ErrorCode.PAYMENT_NOT_FOUND,)
)
async def get_test_payment(call: Call[Manager, None]) -> PaymentDetail:
    return await call.services.payments.read(call.path["reference"], call.caller.business.id, Environment.SANDBOX)


@route(
    "POST",
    ONE + "/simulate",
    "simulateTestPayment",
    "Simulate the outcome of a test payment",
    TAG,
    guard=manager_changes,
    body_max=KB,
    errors=(ErrorCode.PAYMENT_NOT_FOUND, ErrorCode.PAYMENT_ALREADY_FINAL),
)
async def simulate_test_payment(call: Call[Manager, SimulatePayment]) -> PaymentDetail:
    reference, business_id = call.path["reference"], call.caller.business.id
    return await call.services.payments.simulate(reference, call.body.outcome, business_id, by=by(call))


routes = [create_test_payment, get_test_payment, simulate_test_payment]
