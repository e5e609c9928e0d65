"""The timeline of one payment over HTTP: transitions, attempts, events and deliveries."""

from msgspec import structs

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store
from payagg.application.reports.history import accounts_of, gateways_of, history_of
from payagg.application.schemas.payment_timeline import (
    AdminPaymentAttempt,
    AdminPaymentStory,
    PaymentAttempt,
    PaymentDelivery,
    PaymentEvent,
    PaymentStory,
    PaymentTransition,
)
from payagg.application.schemas.payments import PaymentDetail
from payagg.application.schemas.resolutions import ResolutionView
from payagg.application.schemas.views import view_of
from payagg.domain.attempt import Attempt
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Payment
from payagg.domain.resolution import is_resolvable
from payagg.domain.values import Environment


async def payment_timeline(
    store: Store, clock: Clock, reference: str, *, owner: tuple[str, Environment] | None = None
) -> PaymentStory:
    """`owner`: the business and the environment that the payment must belong to. Raises PAYMENT_NOT_FOUND."""
    return (await _load(store, clock, reference, owner))[1]


async def admin_payment_story(
    store: Store, clock: Clock, sealed: GatewayCredentials, reference: str
) -> AdminPaymentStory:
    """As `payment_timeline`; `sealed` opens the accounts that the charges are compared with."""
    payment, story, attempts = await _load(store, clock, reference, None)
    async with store.begin() as tx:
        gateways = await gateways_of(tx, attempts)
        resolutions = await tx.resolutions.of_payment(reference)
        anomalies = await tx.anomalies.of_payment(reference)
    accounts = accounts_of(gateways, sealed, payment.environment)
    shown = [AdminPaymentAttempt.with_charge(attempt, accounts.get(attempt.gateway_id)) for attempt in attempts]
    return AdminPaymentStory(
        **{**structs.asdict(story), "attempts": shown},
        resolutions=[ResolutionView.of(one) for one in resolutions],
        resolvable=is_resolvable(payment, anomalies, clock.now()),
    )


async def _load(
    store: Store, clock: Clock, reference: str, owner: tuple[str, Environment] | None
) -> tuple[Payment, PaymentStory, list[Attempt]]:
    payment = await store.find_payment(reference)
    if payment is None or owner not in (None, (payment.business_id, payment.environment)):
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    async with store.begin() as tx:
        history = await history_of(tx, reference)
        facts = await tx.anomalies.of_payment(reference) if payment.has_adjustments else []
    story = PaymentStory(
        payment=PaymentDetail.of(payment.as_of(clock.now()), facts),
        api_key_id=payment.api_key_id,
        transitions=[PaymentTransition.of(transition) for transition in history.transitions],
        attempts=[PaymentAttempt.of(attempt) for attempt in history.attempts],
        events=[view_of(PaymentEvent, event) for event in history.events],
        deliveries=[PaymentDelivery.of(delivery) for delivery in history.deliveries],
        archived_at=history.archived[1].started_at if history.archived is not None else None,
    )
    return payment, story, history.attempts
