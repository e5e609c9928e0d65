"""Payments and their transitions, found by `reference`."""

from sqlalchemy import (
    bindparam,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.errors import Taken
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.anomalies import ANOMALY
from payagg.adapters.postgres.repositories.anomalies import OF_PAYMENT as ANOMALIES_OF
from payagg.adapters.postgres.repositories.attempts import ATTEMPTS, attempt_of
from payagg.adapters.postgres.repositories.businesses import BUSINESS
from payagg.adapters.postgres.repositories.endpoints import ENDPOINT, SUBSCRIBERS_TO
from payagg.adapters.postgres.repositories.payment_rows import ADD, NOTED, PAYMENT, encode_row
from payagg.adapters.postgres.repositories.rows import RowMap, parameters
from payagg.adapters.postgres.repositories.webhook_events import LAST_EVENT_BESIDE, PostgresWebhookEvents
from payagg.adapters.postgres.schema.accounts import businesses
from payagg.adapters.postgres.schema.payments import payments, transitions
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.outside import Conflict, ReferenceTaken
from payagg.application.ports.payments import LockedPayment, PaymentAggregate
from payagg.domain.payment import Payment, Status, Transition, Trigger

TRANSITION = RowMap(Transition, transitions, from_status=Status, to_status=Status, trigger=Trigger)
# What `save` may change; the rest of a payment is fixed, and the database says so too.
MOVING = ("status", "gateway", "failure_reason", "sequence", "updated_at", "settled_at", "fee", "net_amount")
_REFERENCE = payments.c.reference == bindparam("reference")
_OF_PAYMENT = select(*PAYMENT.columns).where(_REFERENCE)
GET = Statement(_OF_PAYMENT)
LOCK = Statement(_OF_PAYMENT.with_for_update(key_share=True))
BUSINESS_OF = Statement(
    select(*BUSINESS.columns).join(payments, payments.c.business_id == businesses.c.id).where(_REFERENCE)
)
_MOVED = (
    update(payments)
    .where(_REFERENCE, payments.c.status == bindparam("from_status"), payments.c.sequence == bindparam("before"))
    .values(parameters(*MOVING))
    .returning(payments.c.reference)
    .cte("moved")
)
# The transition is written only if the payment is still as read.
_NOTED = (
    insert(transitions)
    .from_select(
        TRANSITION.columns,
        select(*(bindparam(c.name, type_=c.type).label(c.name) for c in TRANSITION.columns)).select_from(_MOVED),
    )
    .returning(transitions.c.reference)
    .cte("noted")
)
MOVE = Statement(must_find(_NOTED))
NOTE = Statement(update(payments).where(_REFERENCE).values(parameters(*NOTED)))
TRANSITIONS = Statement(
    select(*TRANSITION.columns)
    .where(transitions.c.reference == bindparam("reference"))
    .order_by(transitions.c.sequence)
)


class PostgresPayments:
    def __init__(self, connection: StatementConnection, events: PostgresWebhookEvents) -> None:
        self._connection = connection
        self._events = events

    async def get(self, reference: str) -> Payment | None:
        return PAYMENT.from_row(await self._connection.row(GET, reference=reference))

    async def lock(self, reference: str) -> Payment | None:
        return PAYMENT.from_row(await self._connection.row(LOCK, reference=reference))

    async def aggregate(self, reference: str) -> PaymentAggregate | None:
        return await self._aggregate(GET, reference)

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        return await self._aggregate(LOCK, reference)

    async def _aggregate(self, first: Statement, reference: str) -> PaymentAggregate | None:
        # Separate statements, so a read after a lock's wait sees a newer snapshot.
        own = {"reference": reference}
        found, numbered, owner = await self._connection.all((first, own), (ATTEMPTS, own), (BUSINESS_OF, own))
        if not found:
            return None
        business = BUSINESS.load(owner[0]) if owner else None
        return PaymentAggregate(PAYMENT.load(found[0]), business, [attempt_of(row) for row in numbered])

    async def lock_for_status(self, reference: str) -> LockedPayment | None:
        own = {"reference": reference}
        # The rows that the change needs are read in the same round trip.
        asked = ((statement, own) for statement in (LOCK, ATTEMPTS, SUBSCRIBERS_TO, ANOMALIES_OF, LAST_EVENT_BESIDE))
        found, numbered, endpoints, anomalies, last = await self._connection.all(*asked)
        if not found:
            return None
        payment = PAYMENT.load(found[0])
        self._events.last_ids[payment.business_id, payment.environment] = last[0][0] if last else None
        attempts = [attempt_of(row) for row in numbered]
        return LockedPayment(payment, attempts, ENDPOINT.all(endpoints), ANOMALY.all(anomalies))

    async def add(self, payment: Payment) -> bool:
        try:
            added = await self._connection.row(ADD, rows=f"[{encode_row(payment).decode()}]", dates=False)
        except Taken:
            raise ReferenceTaken(payment.reference) from None
        if added is not None and added[1] is None:
            raise ReferenceTaken(payment.reference)
        return added is not None

    async def save(self, payment: Payment, transition: Transition) -> None:
        stale = Conflict("the payment was moved by another transaction")
        values = PAYMENT.values(payment) | TRANSITION.values(transition)
        self._connection.send(MOVE, or_else=stale, before=transition.sequence - 1, **values)

    async def note(self, payment: Payment) -> None:
        self._connection.send(NOTE, **{name: getattr(payment, name) for name in ("reference", *NOTED)})

    async def transitions(self, reference: str) -> list[Transition]:
        return TRANSITION.all(await self._connection.rows(TRANSITIONS, reference=reference))
