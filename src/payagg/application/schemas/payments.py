"""Requests and answers of payments. Limits are in the types, so decoding and OpenAPI share them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from payagg.application.schemas.views import view_of
from payagg.domain.adjustment import Adjustment, AdjustmentKind, told_of
from payagg.domain.anomaly import Anomaly
from payagg.domain.payment import (
    CUSTOMER_NAME_MAX,
    CUSTOMER_PHONE_MAX,
    IDEMPOTENCY_KEY_MAX,
    METADATA_BYTES_MAX,
    METADATA_DEPTH_MAX,
    METADATA_KEY_MAX,
    METADATA_KEYS_MAX,
    OUTCOMES,
    Payment,
    Status,
)
from payagg.domain.values import (
    EMAIL_MAX,
    MAX_AMOUNT,
    MIN_AMOUNT,
    OPTION_SLUG_PATTERN,
    REFERENCE_LENGTH,
    REFERENCE_PATTERN,
    SLUG_MAX,
    SLUG_MIN,
    URL_MAX,
    Environment,
)

# `must`: the required form, for the refusal of another.
Kobo = Annotated[
    int,
    Meta(
        ge=MIN_AMOUNT,
        le=MAX_AMOUNT,
        description="Integer kobo.",
        examples=[150000],
        extra={"must": "Must be an integer number of kobo: 150050 is ₦1,500.50."},
    ),
]
Reference = Annotated[
    str,
    Meta(
        min_length=REFERENCE_LENGTH,
        max_length=REFERENCE_LENGTH,
        pattern=REFERENCE_PATTERN,
        examples=["PAY-20250131-7K2M9X"],
    ),
]
Email = Annotated[str, Meta(max_length=EMAIL_MAX, description="Email address.", examples=["ada@example.com"])]
Name = Annotated[str, Meta(max_length=CUSTOMER_NAME_MAX, examples=["Ada Obi"])]
Phone = Annotated[str, Meta(max_length=CUSTOMER_PHONE_MAX, examples=["+2348012345678"])]
CallbackUrl = Annotated[
    str, Meta(max_length=URL_MAX, description="http or https URL.", examples=["https://shop.example/thanks"])
]
HttpsUrl = Annotated[str, Meta(max_length=URL_MAX, description="https URL.", examples=["https://shop.example/hooks"])]
IdempotencyKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=IDEMPOTENCY_KEY_MAX,
        description="Your name for one attempt to be paid. It finds its payment while that is open and, by default, "
        "for two years after its end; then it makes a new payment.",
        examples=["order-1001"],
    ),
]
Metadata = Annotated[
    dict[str, Any],
    Meta(
        max_length=METADATA_KEYS_MAX,
        description=f"Yours, given back with the payment and its events: at most {METADATA_KEYS_MAX} keys of at most "
        f"{METADATA_KEY_MAX} characters, {METADATA_DEPTH_MAX} levels deep and {METADATA_BYTES_MAX} bytes as JSON.",
        examples=[{"order": "1001"}],
    ),
]
# Any letter case, spelt out: OpenAPI's patterns have no inline flag.
OUTCOME_PATTERN = f"^(?:{'|'.join(''.join(f'[{c}{c.lower()}]' for c in word) for word in OUTCOMES)})$"
# Any payment option's slug: a provider's may hold underscores, an administrator's gateway only hyphens.
GatewaySlug = Annotated[
    str, Meta(min_length=SLUG_MIN, max_length=SLUG_MAX, pattern=OPTION_SLUG_PATTERN, examples=["sandbox"])
]


class InitiatePayment(Struct, rename="camel", kw_only=True, frozen=True):
    """The body of initiate; unknown fields are ignored, null means absent."""

    amount: Kobo
    currency: Literal["NGN"] | None = None
    customer_email: Email | None = None
    customer_name: Name | None = None
    customer_phone: Phone | None = None
    gateway: (
        Annotated[str, Meta(max_length=SLUG_MAX, description="Slug of the option that the page selects first.")] | None
    ) = None
    callback_url: CallbackUrl | None = None
    webhook_url: (
        Annotated[
            HttpsUrl,
            Meta(
                description="Also receives this payment's events, signed with the secret of every active endpoint of "
                "the business in this environment. While there is none, nothing is sent: `Webhook-Url-Warning` says so."
            ),
        ]
        | None
    ) = None
    metadata: Metadata | None = None
    idempotency_key: IdempotencyKey | None = None


class TestPayment(Struct, rename="camel", kw_only=True, frozen=True):
    """The body of a dashboard test payment."""

    amount: Kobo
    customer_email: Email | None = None
    customer_name: Name | None = None
    callback_url: CallbackUrl | None = None
    metadata: Metadata | None = None
    idempotency_key: IdempotencyKey | None = None


class SimulatePayment(Struct, rename="camel", kw_only=True, frozen=True):
    """`outcome` in any letter case: SUCCESS, FAILED or REVERSED."""

    outcome: Annotated[
        str,
        Meta(
            max_length=8,
            pattern=OUTCOME_PATTERN,
            examples=["SUCCESS"],
            extra={"must": f"Must be one of {', '.join(OUTCOMES)}."},
        ),
    ]


class InitiatedPayment(Struct, rename="camel", frozen=True):
    reference: Reference
    checkout_url: str
    amount: Kobo
    currency: str
    environment: Environment
    status: Status
    expires_at: datetime


class PaymentAdjustment(Struct, rename="camel", frozen=True, omit_defaults=True):
    """A refund, a dispute, or money that came late, twice or short. `amount` is kobo, null when the provider named
    none. `state`: a dispute's `opened`, `won`, `lost` or `accepted`; ATTENTION's reason; else `processed`. ATTENTION
    also has the kobo expected and, if any came, the amount received, in the units of its currency."""

    kind: AdjustmentKind
    amount: int | None
    state: str
    at: datetime
    expected: int | None = None
    received: int | None = None

    @classmethod
    def of(cls, adjustment: Adjustment) -> "PaymentAdjustment":
        return view_of(PaymentAdjustment, adjustment)


class PaymentDetail(Struct, rename="camel", frozen=True):
    """The merchant's view of a payment; also `data` of every event. `fee` is the provider's and `netAmount` the rest of
    what was paid, in kobo, null when unknown. `adjustments` are refunds, disputes and money that came late, twice or
    short, oldest first."""

    reference: Reference
    amount: Kobo
    currency: str
    status: Status
    environment: Environment
    gateway: str | None
    customer_email: str | None
    customer_name: str | None
    customer_phone: str | None
    callback_url: str | None
    metadata: dict[str, Any] | None
    failure_reason: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    settled_at: datetime | None
    fee: int | None
    net_amount: int | None
    adjustments: list[PaymentAdjustment]

    @classmethod
    def of(cls, payment: Payment, facts: Sequence[Anomaly] = ()) -> "PaymentDetail":
        """`facts` are the payment's anomalies; a payment without `has_adjustments` has none that count."""
        return cls(
            reference=payment.reference,
            amount=payment.amount,
            currency=payment.currency,
            status=payment.status,
            environment=payment.environment,
            gateway=payment.gateway,
            customer_email=payment.customer_email,
            customer_name=payment.customer_name,
            customer_phone=payment.customer_phone,
            callback_url=payment.callback_url,
            metadata=dict(payment.metadata) if payment.metadata is not None else None,
            failure_reason=payment.failure_reason,
            created_at=payment.created_at,
            updated_at=payment.updated_at,
            expires_at=payment.expires_at,
            settled_at=payment.settled_at,
            fee=payment.fee,
            net_amount=payment.net_amount,
            adjustments=[PaymentAdjustment.of(one) for one in told_of(facts, payment.amount)] if facts else [],
        )


class Message(Struct, frozen=True):
    """A message for a person, without other data."""

    message: str
