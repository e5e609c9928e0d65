"""What the payer's page asks and gets. Limits are in the types, so decoding and OpenAPI share them."""

from datetime import datetime
from enum import Enum
from typing import Annotated

from msgspec import Meta, Struct

from payagg.application.schemas.payments import GatewaySlug, Kobo, Reference
from payagg.domain.attempt import HandOffKind
from payagg.domain.business import Business
from payagg.domain.gateway import UnavailableReason
from payagg.domain.payment import Payment, Status
from payagg.domain.values import Environment


class ProcessPayment(Struct, rename="camel", kw_only=True, frozen=True):
    """What a payer may choose; everything else about the payment is fixed. `cardNumber` is only for the simulator."""

    gateway_slug: GatewaySlug | None = None
    card_number: Annotated[str, Meta(max_length=32, examples=["4242 4242 4242 4242"])] | None = None


class PayerReason(Enum):
    """The failure reasons a payer may read: our own words only, never a provider's."""

    EXPIRED = "EXPIRED"
    DECLINED = "DECLINED"
    INSUFFICIENT_FUNDS = "INSUFFICIENT_FUNDS"
    EXPIRED_CARD = "EXPIRED_CARD"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"

    @classmethod
    def of(cls, reason: str | None) -> "PayerReason | None":
        return cls.__members__.get(reason or "")


class PublicPaymentDetail(Struct, rename="camel", frozen=True):
    """What a payer may see."""

    reference: Reference
    amount: Kobo
    currency: str
    status: Status
    environment: Environment
    business_name: str
    gateway: str | None
    expires_at: datetime
    expired: bool
    failure_reason: PayerReason | None = None

    @classmethod
    def of(cls, payment: Payment, business: Business, now: datetime) -> "PublicPaymentDetail":
        """The payment as of `now`, whatever its row says."""
        seen = payment.as_of(now)
        return cls(
            reference=seen.reference,
            amount=seen.amount,
            currency=seen.currency,
            status=seen.status,
            environment=seen.environment,
            business_name=business.name,
            gateway=seen.gateway,
            expires_at=seen.expires_at,
            expired=now >= seen.expires_at,
            failure_reason=PayerReason.of(seen.failure_reason),
        )


class CheckoutGateway(Struct, rename="camel", frozen=True):
    slug: str
    name: str
    description: str | None
    logo_url: str | None
    is_default: bool
    available: bool
    unavailable_reason: UnavailableReason | None


class CheckoutGateways(Struct, rename="camel", frozen=True):
    gateways: list[CheckoutGateway]


class CheckoutPage(Struct, frozen=True):
    """The hosted page's data. `options` is empty unless the payment is INITIATED; `method` is the option's name of a
    final payment; `is_paid_late`: it failed, money came after that, and not all of it went back."""

    payment: PublicPaymentDetail
    options: list[CheckoutGateway]
    redirect_url: str | None
    settled_at: datetime | None
    method: str | None
    is_paid_late: bool


class ProcessedPayment(Struct, rename="camel", frozen=True):
    """Where to send the payer: a provider's page, encoded SDK launch parameters, or back to the hosted page."""

    reference: Reference
    status: Status
    gateway: str
    handoff: HandOffKind
    checkout_url: str


class VerifiedPayment(Struct, rename="camel", frozen=True):
    reference: Reference
    status: Status
    amount: Kobo
    currency: str
    callback_url: str | None
    redirect_url: str | None
    last_decline: PayerReason | None = None  # of a PENDING payment: its page may take another card
