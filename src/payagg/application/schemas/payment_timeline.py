"""One payment's timeline, for managers and administrators. No provider's text, no address."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from payagg.application.schemas.payments import PaymentDetail
from payagg.application.schemas.resolutions import ResolutionView
from payagg.application.schemas.views import view_of
from payagg.application.schemas.webhooks import DeliveryView, EventId
from payagg.domain.attempt import Attempt, AttemptState, HandOffKind
from payagg.domain.payment import Status, Transition


class PaymentTransition(Struct, rename="camel", frozen=True):
    """One change of status; `actor`: who caused it, `reason`: why a payment failed."""

    sequence: int
    from_status: Status
    to_status: Status
    trigger: str
    actor: str
    reason: str | None
    at: datetime

    @classmethod
    def of(cls, transition: Transition) -> "PaymentTransition":
        return view_of(cls, transition, trigger=transition.trigger.value)


class PaymentAttempt(Struct, rename="camel", frozen=True):
    """One charge attempt at a gateway; `lastDecline` is our word for the last decline there."""

    number: int
    gateway: str
    state: AttemptState
    handoff: HandOffKind | None
    created_at: datetime
    handed_off_at: datetime | None
    last_decline: str | None

    @classmethod
    def of(cls, attempt: Attempt) -> "PaymentAttempt":
        return view_of(cls, attempt, handoff=attempt.hand_off.kind if attempt.hand_off else None)


class AdminPaymentAttempt(PaymentAttempt, frozen=True):
    """Also what operators need to find the charge at the provider: its id there, the channel, the fee in kobo, and
    whether it was made with another provider account than the one on file; null when unknown."""

    provider_id: str | None
    channel: str | None
    fee: int | None
    paid_at: datetime | None
    is_other_account: bool | None

    @classmethod
    def with_charge(cls, attempt: Attempt, account: str | None) -> "AdminPaymentAttempt":
        """`account` is the fingerprint of the account on file."""
        is_known = attempt.account is not None and account is not None
        is_other = attempt.is_of_other_account(account) if is_known else None
        return view_of(
            cls, attempt, handoff=attempt.hand_off.kind if attempt.hand_off else None, is_other_account=is_other
        )


class PaymentEvent(Struct, rename="camel", frozen=True):
    """An event that the payment caused; its body is in the list of events."""

    id: EventId
    type: str
    sequence: int
    created_at: datetime


class PaymentDelivery(DeliveryView, frozen=True):
    """`endpointId` is null for deliveries to the payment's own address."""

    endpoint_id: str | None


class PaymentStory(Struct, rename="camel", frozen=True):
    """The payment as it is now, and its history, each list oldest first. `apiKeyId`: the key that initiated it; null
    for a test payment of the dashboard. Transitions and attempts of an old payment may be in the archive since
    `archivedAt`, and no longer here."""

    payment: PaymentDetail
    api_key_id: str | None
    transitions: list[PaymentTransition]
    attempts: Sequence[PaymentAttempt]
    events: list[PaymentEvent]
    deliveries: list[PaymentDelivery]
    archived_at: datetime | None


class AdminPaymentStory(PaymentStory, frozen=True):
    """As PaymentStory, with operators' details of each charge, and the requests to end the payment by hand, oldest
    first. `resolvable`: whether such a request may be made, as nothing else will end the payment."""

    attempts: Sequence[AdminPaymentAttempt]
    resolutions: list[ResolutionView]
    resolvable: bool
