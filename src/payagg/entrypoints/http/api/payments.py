"""Payments with a secret key: context, initiate, read, simulate; and dashboard test payments, the same use cases
without a key in the browser."""

import structlog
from litestar import Response

from payagg.application.accounts.access import Manager
from payagg.application.accounts.api_keys import ApiKeyContext, context_of
from payagg.application.payments.payments import Initiation
from payagg.application.ports.accounts import KeyHolder
from payagg.application.schemas.payments import (
    InitiatedPayment,
    InitiatePayment,
    PaymentDetail,
    SimulatePayment,
    TestPayment,
)
from payagg.application.telemetry import count
from payagg.domain.errors import ErrorCode
from payagg.domain.values import Environment
from payagg.entrypoints.http.api.auth import by, cached_key, manager_changes, manager_reads, sandbox_key, secret_key
from payagg.entrypoints.http.server.middleware import note_reference
from payagg.entrypoints.http.server.routing import KB, AnyRequest, Call, Routes
from payagg.entrypoints.http.server.wire import envelope

routes = Routes("Payments")
ONE = "/payments/{reference:str}"
TESTS = "Test payments"
TEST = "/merchant/businesses/{business_id:str}/test-payment"
ONE_TEST = TEST + "/{reference:str}"
_log = structlog.get_logger("payagg.http")


@routes.add(
    "POST",
    "/payments/initiate",
    guard=cached_key,
    body_max=64 * KB,
    returns=InitiatedPayment,
    status=201,
    replay_status=200,
    errors=(
        ErrorCode.GATEWAY_NOT_FOUND,
        ErrorCode.GATEWAY_DISABLED,
        ErrorCode.DUPLICATE_PAYMENT,
        ErrorCode.NO_GATEWAY_AVAILABLE,
    ),
)
async def initiate_payment(call: Call[KeyHolder, InitiatePayment]) -> Response[bytes]:
    """Initiate a payment. Makes a reference and a checkout link that is valid for one hour; no provider is contacted.
    The key decides the environment. The same idempotency key again returns the open payment with 200; once that payment
    is final it gets `DUPLICATE_PAYMENT`."""
    holder = call.caller
    done = await call.services.payments.initiate(call.body, holder.business, holder.key.environment, holder)
    return _initiate_response(call.request, done)


@routes.add("GET", ONE, guard=cached_key)
async def get_payment(call: Call[KeyHolder, None]) -> PaymentDetail:
    """Read a payment. Deliver on `SUCCESS`. A final status stays; `adjustments` shows money that moved afterwards."""
    holder, reference = call.caller, call.path["reference"]
    return await call.services.payments.read(reference, holder.business.id, holder.key.environment, holder)


@routes.add("POST", ONE + "/simulate", guard=sandbox_key, body_max=KB, errors=(ErrorCode.PAYMENT_ALREADY_FINAL,))
async def simulate_payment(call: Call[KeyHolder, SimulatePayment]) -> PaymentDetail:
    """Simulate the outcome of a sandbox payment. Stands for a provider's event: the status becomes final and the
    webhook is sent."""
    reference, business_id = call.path["reference"], call.caller.business.id
    return await call.services.payments.simulate(reference, call.body.outcome, business_id, by=by(call))


@routes.add("GET", "/payments/context", guard=secret_key)
async def get_payment_context(call: Call[KeyHolder, None]) -> ApiKeyContext:
    """Show the business and environment of the key."""
    return context_of(call.caller)


@routes.add(
    "POST",
    TEST,
    tag=TESTS,
    guard=manager_changes,
    body_max=64 * KB,
    returns=InitiatedPayment,
    status=201,
    replay_status=200,
    errors=(ErrorCode.NO_SANDBOX_KEY, ErrorCode.DUPLICATE_PAYMENT),
)
async def create_test_payment(call: Call[Manager, TestPayment]) -> Response[bytes]:
    """Create a sandbox payment. As initiate does, without a key in the browser; the business needs an active sandbox
    key."""
    done = await call.services.payments.initiate_test(call.body, call.caller.business, by=by(call))
    return _initiate_response(call.request, done)


@routes.add("GET", ONE_TEST, tag=TESTS, guard=manager_reads)
async def get_test_payment(call: Call[Manager, None]) -> PaymentDetail:
    """Read a test payment."""
    return await call.services.payments.read(call.path["reference"], call.caller.business.id, Environment.SANDBOX)


@routes.add(
    "POST",
    ONE_TEST + "/simulate",
    tag=TESTS,
    guard=manager_changes,
    body_max=KB,
    errors=(ErrorCode.PAYMENT_ALREADY_FINAL,),
)
async def simulate_test_payment(call: Call[Manager, SimulatePayment]) -> PaymentDetail:
    """Simulate the outcome of a test payment."""
    reference, business_id = call.path["reference"], call.caller.business.id
    return await call.services.payments.simulate(reference, call.body.outcome, business_id, by=by(call))


def _initiate_response(request: AnyRequest, done: Initiation) -> Response[bytes]:
    """201 for a new payment, 200 for a replay, shown by two headers; a third warns of a webhookUrl that nothing can be
    sent to."""
    note_reference(request, done.payment.reference)
    headers = {"Webhook-Url-Warning": "no-active-endpoint"} if done.unsigned else {}
    if done.created:
        return envelope(done.payment, 201, headers)
    headers["Idempotency-Replayed"] = "true"
    if done.mismatch:
        headers["Idempotency-Mismatch"] = "true"
        count("idempotency_mismatches")
        _log.warning("idempotency key reused with another body", reference=done.payment.reference)
    return envelope(done.payment, 200, headers)
