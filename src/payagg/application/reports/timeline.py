"""The timeline of one payment over HTTP, for managers and administrators: no provider's text, no address."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec import Struct, structs

from payagg.application.gateways.credentials import GatewayCredentials
from payagg.application.ports.outside import Clock
from payagg.application.ports.store import Store, Transaction
from payagg.application.schemas.operations import ResolutionView
from payagg.application.schemas.payments import PaymentDetail
from payagg.application.schemas.views import view_of
from payagg.application.schemas.webhooks import DeliveryView, EventId
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import Attempt, AttemptState, HandOffKind
from payagg.domain.delivery import Delivery, Event
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment, Status, Transition
from payagg.domain.resolution import is_resolvable
from payagg.domain.values import Environment


class PaymentTransition(Struct, rename="camel", frozen=True):
    """One change of status; `actor`: who caused it, `reason`: why it failed, else the charge that was paid or went
    back, or SIMULATED."""

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


@dataclass(frozen=True)
class PaymentHistory:
    """Transitions and attempts of an old payment may be in the archive; `archived` names the part."""

    transitions: list[Transition]
    attempts: list[Attempt]
    archived: tuple[ArchivedPayment, ArchivePart] | None
    events: list[Event]
    deliveries: list[Delivery]


async def history_of(tx: Transaction, reference: str) -> PaymentHistory:
    transitions, attempts = await tx.payments.transitions(reference), await tx.attempts.of_payment(reference)
    return PaymentHistory(
        transitions, attempts, await tx.payments.archived(reference), *await tx.webhook_events.of_payment(reference)
    )


async def gateways_of(tx: Transaction, attempts: Sequence[Attempt]) -> list[Gateway]:
    """The gateways of the attempts, deleted ones included."""
    made_through = {attempt.gateway_id for attempt in attempts if attempt.gateway_id is not None}
    found = [await tx.gateways.get_any(gateway_id) for gateway_id in sorted(made_through)]
    return [gateway for gateway in found if gateway is not None]


def accounts_of(
    gateways: Sequence[Gateway], sealed: GatewayCredentials, environment: Environment
) -> dict[str | None, str | None]:
    """The fingerprints of the provider accounts on file, by gateway id, to compare the charges' with."""
    return {gateway.id: sealed.accounts(gateway).get(environment) for gateway in gateways}


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
