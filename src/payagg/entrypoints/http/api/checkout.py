"""The hosted checkout's operations: no credential, so only payer-safe fields and a limit on guessing."""

from payagg.application.schemas.checkout import (
    CheckoutGateways,
    ProcessedPayment,
    ProcessPayment,
    PublicPaymentDetail,
    VerifiedPayment,
)
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.api.auth import charging_reference, public_reference
from payagg.entrypoints.http.server.routing import KB, Call, Routes

routes = Routes("Hosted checkout")
ONE = "/public/payments/{reference:str}"


@routes.add(
    "GET",
    ONE,
    "Show a payment to its payer",
    guard=public_reference,
    description="Amount, status and the business's name; nothing about the payer.",
)
async def get_public_payment(call: Call[None, None]) -> PublicPaymentDetail:
    return await call.services.checkout.detail(call.path["reference"])


@routes.add(
    "GET",
    ONE + "/gateways",
    "List the payment's options",
    guard=public_reference,
    description="The built-in one first; `unavailableReason` says why one is not available.",
)
async def list_payment_options(call: Call[None, None]) -> CheckoutGateways:
    return await call.services.checkout.options(call.path["reference"])


@routes.add(
    "POST",
    ONE + "/process",
    "Choose a gateway and start the charge",
    guard=charging_reference,
    body_max=KB,
    errors=(
        ErrorCode.GATEWAY_NOT_AVAILABLE,
        ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED,
        ErrorCode.PAYMENT_ALREADY_PROCESSED,
        ErrorCode.PAYMENT_EXPIRED,
    ),
    description="A repeat returns the existing hand-off and starts no second charge.",
)
async def process_payment(call: Call[None, ProcessPayment]) -> ProcessedPayment:
    return await call.services.checkout.process(call.path["reference"], call.body)


@routes.add(
    "GET",
    ONE + "/verify",
    "Ask the provider and show the status",
    guard=charging_reference,
    errors=(ErrorCode.GATEWAY_NOT_AVAILABLE, ErrorCode.PAYMENT_AMOUNT_MISMATCH),
    description="Asks at most every two seconds, less often as the charge ages, and returns `callbackUrl` too.",
)
async def verify_payment(call: Call[None, None]) -> VerifiedPayment:
    return await call.services.verification.verify(call.path["reference"])
