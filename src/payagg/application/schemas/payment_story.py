"""What managers and administrators see of one payment's story. Nothing that a provider said or was told, no address."""

from datetime import datetime

from msgspec import Struct

from payagg.application.schemas.payments import PaymentDetail
from payagg.application.schemas.webhooks import DeliveryView, EventId
from payagg.domain.attempt import Attempt, AttemptState, HandOffKind
from payagg.domain.payment import Status, Transition
from payagg.domain.webhook import Event


class PaymentTransition(Struct, rename="camel", frozen=True):
    """One change of status; `actor` says who brought it about, `reason` why a payment failed."""

    sequence: int
    from_status: Status
    to_status: Status
    trigger: str
    actor: str
    reason: str | None
    at: datetime

    @classmethod
    def of(cls, transition: Transition) -> "PaymentTransition":
        return cls(
            sequence=transition.sequence,
            from_status=transition.from_status,
            to_status=transition.to_status,
            trigger=transition.trigger.value,
            actor=transition.actor,
            reason=transition.reason,
            at=transition.at,
        )


class PaymentAttempt(Struct, rename="camel", frozen=True):
    """One try to start a charge at a gateway; `lastDecline` is our word for the decline that was last seen there."""

    number: int
    gateway: str
    state: AttemptState
    handoff: HandOffKind | None
    created_at: datetime
    handed_off_at: datetime | None
    last_decline: str | None

    @classmethod
    def of(cls, attempt: Attempt) -> "PaymentAttempt":
        return cls(
            number=attempt.number,
            gateway=attempt.gateway,
            state=attempt.state,
            handoff=attempt.hand_off.kind if attempt.hand_off else None,
            created_at=attempt.created_at,
            handed_off_at=attempt.handed_off_at,
            last_decline=attempt.last_decline,
        )


class PaymentEvent(Struct, rename="camel", frozen=True):
    """An event that the payment caused; its body is in the list of events."""

    id: EventId
    type: str
    sequence: int
    created_at: datetime

    @classmethod
    def of(cls, event: Event) -> "PaymentEvent":
        return cls(event.id, event.type, event.sequence, event.created_at)


class PaymentDelivery(DeliveryView, frozen=True):
    """`endpointId` is null for what went to the payment's own address."""

    endpoint_id: str | None


class PaymentStory(Struct, rename="camel", frozen=True):
    """The payment as it is now, and what happened to it, each list oldest first. Of a payment that ended long ago the
    transitions and attempts may be in the archive, since `archivedAt`, and no longer here."""

    payment: PaymentDetail
    transitions: list[PaymentTransition]
    attempts: list[PaymentAttempt]
    events: list[PaymentEvent]
    deliveries: list[PaymentDelivery]
    archived_at: datetime | None
