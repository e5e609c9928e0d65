"""The story of one payment for those who may see it: transitions, attempts, events and deliveries."""

from payagg.application.ports import Clock
from payagg.application.schemas.payment_story import (
    PaymentAttempt,
    PaymentDelivery,
    PaymentEvent,
    PaymentStory,
    PaymentTransition,
)
from payagg.application.schemas.payments import PaymentDetail
from payagg.application.store import Store
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment


async def payment_story(
    store: Store, clock: Clock, reference: str, *, owner: tuple[str, Environment] | None = None
) -> PaymentStory:
    """`owner`: the business and the environment that the payment must belong to. Raises PAYMENT_NOT_FOUND."""
    payment = await store.find_payment(reference)
    if payment is None or owner not in (None, (payment.business_id, payment.environment)):
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    async with store.begin() as tx:
        transitions = await tx.payments.transitions(reference)
        attempts = await tx.payments.attempts(reference)
        archived = await tx.archive.find(reference)
        events, deliveries = await tx.webhooks.of_payment(reference)
    return PaymentStory(
        payment=PaymentDetail.of(payment.as_of(clock.now())),
        transitions=[PaymentTransition.of(transition) for transition in transitions],
        attempts=[PaymentAttempt.of(attempt) for attempt in attempts],
        events=[PaymentEvent.of(event) for event in sorted(events, key=lambda event: event.sequence)],
        deliveries=[PaymentDelivery.of(delivery) for delivery in sorted(deliveries, key=lambda one: one.id)],
        archived_at=archived[1].started_at if archived is not None else None,
    )
