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


@routes.add("GET", ONE, guard=public_reference)
async def get_public_payment(call: Call[None, None]) -> PublicPaymentDetail:
    """Show a payment to its payer. Amount, status and the business's name; nothing about the payer."""
    return await call.services.checkout.detail(call.path["reference"])


@routes.add("GET", ONE + "/gateways", guard=public_reference)
async def list_payment_options(call: Call[None, None]) -> CheckoutGateways:
    """List the payment's options. The built-in one first; `unavailableReason` says why one is not available."""
    return await call.services.checkout.options(call.path["reference"])


@routes.add(
    "POST",
    ONE + "/process",
    guard=charging_reference,
    body_max=KB,
    errors=(
        ErrorCode.GATEWAY_NOT_AVAILABLE,
        ErrorCode.GATEWAY_ENVIRONMENT_NOT_CONFIGURED,
        ErrorCode.PAYMENT_ALREADY_PROCESSED,
        ErrorCode.PAYMENT_EXPIRED,
    ),
)
async def process_payment(call: Call[None, ProcessPayment]) -> ProcessedPayment:
    """Choose a gateway and start the charge. A repeat returns the existing hand-off and starts no second charge."""
    return await call.services.checkout.process(call.path["reference"], call.body)


@routes.add(
    "GET",
    ONE + "/verify",
    guard=charging_reference,
    errors=(ErrorCode.GATEWAY_NOT_AVAILABLE, ErrorCode.PAYMENT_AMOUNT_MISMATCH),
)
async def verify_payment(call: Call[None, None]) -> VerifiedPayment:
    """Ask the provider and show the status. Asks at most every two seconds, less often as the charge ages, and returns
    `callbackUrl` too."""
    return await call.services.verification.verify(call.path["reference"])
