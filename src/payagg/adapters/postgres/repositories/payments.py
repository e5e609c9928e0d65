"""Payments and what belongs to one: transitions, attempts, provider calls. All found by `reference`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Select,
    Text,
    and_,
    any_,
    func,
    literal,
    null,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.repositories.rows import RowMap, stored
from payagg.adapters.postgres.schema.tables import (
    HAS_PAYER,
    attempts,
    idempotency_keys,
    payments,
    provider_calls,
    transitions,
)
from payagg.application.ports import Conflict, ProviderCall, ReferenceTaken
from payagg.domain.attempt import Attempt, AttemptState, HandOff, HandOffKind
from payagg.domain.checks import restored
from payagg.domain.payment import PAYER_FIELDS, Payment, Status, Transition, Trigger
from payagg.domain.values import Environment

PAYMENT = RowMap(Payment, payments, environment=Environment, status=Status)
TRANSITION = RowMap(Transition, transitions, from_status=Status, to_status=Status, trigger=Trigger)
CALL = RowMap(ProviderCall, provider_calls)
CALLS_MAX = 1_000
# What `save` may change; the rest of a payment is fixed, and the database says so too.
MOVING = ("status", "gateway", "failure_reason", "sequence", "updated_at", "settled_at")


class PostgresPayments:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self, reference: str) -> Payment | None:
        return await self._one(select(*PAYMENT.columns).where(payments.c.reference == reference))

    async def lock(self, reference: str) -> Payment | None:
        query = select(*PAYMENT.columns).where(payments.c.reference == reference)
        return await self._one(query.with_for_update(key_share=True))

    async def add(self, payment: Payment) -> bool:
        values = PAYMENT.values(payment)
        if payment.idempotency_key is not None:
            identity = {name: values[name] for name in ("business_id", "environment", "reference")}
            key = insert(idempotency_keys).values(key=payment.idempotency_key, **identity).on_conflict_do_nothing()
            if (await self._connection.execute(key.returning(idempotency_keys.c.key))).first() is None:
                return False
        row = insert(payments).values(**values).on_conflict_do_nothing().returning(payments.c.reference)
        if (await self._connection.execute(row)).first() is None:
            raise ReferenceTaken(payment.reference)
        return True

    async def save(self, payment: Payment, transition: Transition) -> None:
        moved = (
            update(payments)
            .where(
                payments.c.reference == payment.reference,
                payments.c.status == transition.from_status.value,
                payments.c.sequence == transition.sequence - 1,
            )
            .values({name: stored(getattr(payment, name)) for name in MOVING})
            .returning(payments.c.reference)
            .cte("moved")
        )
        values = TRANSITION.values(transition)
        columns = TRANSITION.columns
        row = select(*(literal(values[c.name], c.type).label(c.name) for c in columns)).select_from(moved)
        written = insert(transitions).from_select(columns, row).returning(transitions.c.reference)
        if (await self._connection.execute(written)).first() is None:
            raise Conflict("the payment was moved by another transaction")

    async def expired(self, now: datetime, limit: int) -> list[Payment]:
        query = (
            select(*PAYMENT.columns)
            .where(payments.c.status == _in_text(Status.INITIATED.value), payments.c.expires_at <= now)
            .order_by(payments.c.expires_at, payments.c.reference)
            .limit(limit)
            .with_for_update(key_share=True, skip_locked=True)
        )
        return [PAYMENT.load(row) for row in await self._connection.execute(query)]

    async def attempts(self, reference: str) -> list[Attempt]:
        query = select(attempts).where(attempts.c.reference == reference).order_by(attempts.c.number)
        return [_attempt(row) for row in await self._connection.execute(query)]

    async def add_attempt(self, attempt: Attempt) -> None:
        await self._connection.execute(insert(attempts).values(_attempt_values(attempt)))

    async def save_attempt(self, attempt: Attempt, token: str) -> bool:
        values = _attempt_values(attempt)
        # `begin_ask` may have moved this on since the attempt was read; it never goes back.
        values["last_ask_at"] = func.greatest(attempts.c.last_ask_at, attempt.last_ask_at)
        written = (
            update(attempts)
            .where(
                attempts.c.reference == values.pop("reference"),
                attempts.c.number == values.pop("number"),
                attempts.c.token == token,
            )
            .values(values)
            .returning(attempts.c.number)
        )
        return (await self._connection.execute(written)).first() is not None

    async def due_asks(self, now: datetime, limit: int, hold: timedelta, gateway: str | None = None) -> list[Attempt]:
        due = (
            select(attempts.c.reference, attempts.c.number)
            .where(attempts.c.next_ask_at <= now, true() if gateway is None else attempts.c.gateway == gateway)
            .where(or_(attempts.c.held_until.is_(None), attempts.c.held_until <= now))
            .order_by(attempts.c.next_ask_at, attempts.c.reference)
            .limit(_in_text(limit))
            .with_for_update(key_share=True, skip_locked=True)
            .cte("due")
        )
        leased = (
            update(attempts)
            .where(attempts.c.reference == due.c.reference, attempts.c.number == due.c.number)
            .values(held_until=now + hold)
            .returning(attempts)
            .cte("held")
        )
        # RETURNING comes in no order of its own.
        ordered = select(leased).order_by(leased.c.next_ask_at, leased.c.reference)
        return [_attempt(row) for row in await self._connection.execute(ordered)]

    async def oldest_ask(self, now: datetime) -> datetime | None:
        query = select(func.min(attempts.c.next_ask_at)).where(attempts.c.next_ask_at <= now)
        oldest: datetime | None = await self._connection.scalar(query)
        return oldest

    async def has_open_attempts(self, gateway_id: str) -> bool:
        is_open = and_(attempts.c.gateway_id == gateway_id, attempts.c.next_ask_at.is_not(None))
        # In an order, though any one will do: it leads by the index, also where half of the table would match.
        first = select(attempts.c.reference).where(is_open).order_by(attempts.c.reference).limit(_in_text(1))
        return (await self._connection.execute(first)).first() is not None

    async def begin_ask(self, reference: str, number: int, now: datetime, every: timedelta) -> bool:
        begun = (
            update(attempts)
            .where(
                and_(attempts.c.reference == reference, attempts.c.number == number),
                or_(attempts.c.last_ask_at.is_(None), attempts.c.last_ask_at <= now - every),
            )
            .values(last_ask_at=now)
            .returning(attempts.c.number)
        )
        return (await self._connection.execute(begun)).first() is not None

    async def transitions(self, reference: str) -> list[Transition]:
        query = select(*TRANSITION.columns).where(transitions.c.reference == reference)
        rows = await self._connection.execute(query.order_by(transitions.c.sequence))
        return [TRANSITION.load(row) for row in rows]

    async def add_call(self, call: ProviderCall) -> None:
        await self._connection.execute(insert(provider_calls).values(CALL.values(call)))

    async def calls(self, reference: str) -> list[ProviderCall]:
        query = select(*CALL.columns).where(provider_calls.c.reference == reference)
        rows = await self._connection.execute(query.order_by(provider_calls.c.id).limit(CALLS_MAX))
        return [CALL.load(row) for row in rows]

    async def last_answer(self, reference: str) -> ProviderCall | None:
        query = select(*CALL.columns).where(provider_calls.c.reference == reference, provider_calls.c.word.is_not(None))
        row = (await self._connection.execute(query.order_by(provider_calls.c.id.desc()).limit(1))).first()
        return CALL.load(row) if row else None

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        query = (
            select(payments.c.reference)
            .where(text(HAS_PAYER), payments.c.settled_at < before)
            .order_by(payments.c.settled_at, payments.c.reference)
            .limit(_in_text(limit))
            .with_for_update(key_share=True, skip_locked=True)
        )
        return list((await self._connection.execute(query)).scalars())

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        # A walk in bounded steps: an index for what is asked once a year would cost every initiation.
        step = (
            select(payments.c.reference, payments.c.customer_email)
            .where(payments.c.reference > after)
            .order_by(payments.c.reference)
            .limit(limit)
            .cte("step")
        )
        is_theirs = func.lower(step.c.customer_email) == func.lower(email)
        query = select(func.array_agg(step.c.reference).filter(is_theirs), func.max(step.c.reference))
        found, last = (await self._connection.execute(query)).one()
        return sorted(found or ()), last

    async def clear_payer(self, references: Sequence[str]) -> None:
        cleared = dict.fromkeys((*PAYER_FIELDS, "fingerprint"), null())
        await self._connection.execute(
            update(payments).where(payments.c.reference == any_(_texts(references))).values(cleared)
        )
        await self._connection.execute(
            update(attempts)
            .where(attempts.c.reference == any_(_texts(references)), attempts.c.hand_off_url != "")
            .values(hand_off_url="")
        )

    async def _one(self, query: "Select[Any]") -> Payment | None:
        row = (await self._connection.execute(query)).first()
        return PAYMENT.load(row) if row else None


def _texts(values: Sequence[str]) -> BindParameter[Any]:
    return literal(list(values), ARRAY(Text))


def _in_text(value: Any) -> BindParameter[Any]:
    """Written into the statement: the plan for any parameters knows that a partial index fits, or how few rows come."""
    return literal(value, literal_execute=True)


def _attempt(row: Any) -> Attempt:
    values = dict(row._mapping)
    del values["held_until"]
    kind, url = values.pop("hand_off_kind"), values.pop("hand_off_url")
    values["state"] = AttemptState(values["state"])
    fields = {"kind": HandOffKind(kind), "checkout_url": url} if url is not None else None
    return restored(Attempt, {**values, "hand_off": restored(HandOff, fields) if fields else None})


def _attempt_values(attempt: Attempt) -> dict[str, Any]:
    own = [c.name for c in attempts.c if not c.name.startswith(("hand_off_", "held_"))]
    hand_off = attempt.hand_off
    return {
        **{name: getattr(attempt, name) for name in own},
        "held_until": None,
        "state": attempt.state.value,
        "hand_off_kind": hand_off.kind.value if hand_off else None,
        "hand_off_url": hand_off.checkout_url if hand_off else None,
    }
