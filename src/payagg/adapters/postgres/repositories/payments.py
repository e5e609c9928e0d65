"""Payments and what belongs to one: transitions, attempts, provider calls. All found by `reference`."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    Integer,
    Text,
    all_,
    and_,
    any_,
    bindparam,
    func,
    null,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.errors import Taken
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.anomalies import ANOMALY
from payagg.adapters.postgres.repositories.anomalies import OF_PAYMENT as ANOMALIES_OF
from payagg.adapters.postgres.repositories.businesses import BUSINESS
from payagg.adapters.postgres.repositories.payment_rows import ADD, NOTED, PAYMENT, encoded
from payagg.adapters.postgres.repositories.rows import RowMap, in_text, parameters, stored
from payagg.adapters.postgres.repositories.webhooks import ENDPOINT, LAST_EVENT_BESIDE, SUBSCRIBERS_TO, PostgresWebhooks
from payagg.adapters.postgres.schema.tables import (
    HAS_PAYER,
    IS_UNSETTLED,
    attempts,
    businesses,
    payments,
    provider_calls,
    transitions,
)
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.outside import Conflict, ReferenceTaken
from payagg.application.ports.payments import PaymentAggregate, PaymentToSettle, ProviderCall
from payagg.domain.attempt import FIRST_ASK_MAX, HASTEN_PAID, Attempt, AttemptState, HandOff, HandOffKind
from payagg.domain.checks import restored
from payagg.domain.payment import PAYER_FIELDS, Payment, Status, Transition, Trigger
from payagg.domain.rate_limit import EPOCH
from payagg.domain.values import CLOCK_SLACK, Environment

TRANSITION = RowMap(Transition, transitions, from_status=Status, to_status=Status, trigger=Trigger)
CALL = RowMap(ProviderCall, provider_calls)
CALLS_MAX = 1_000
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
# The transition is written only where the payment stood as it was read.
_NOTED = (
    insert(transitions)
    .from_select(
        TRANSITION.columns,
        select(*(bindparam(f"own_{c.name}", type_=c.type).label(c.name) for c in TRANSITION.columns)).select_from(
            _MOVED
        ),
    )
    .returning(transitions.c.reference)
    .cte("noted")
)
MOVE = Statement(must_find(_NOTED))
NOTE = Statement(update(payments).where(_REFERENCE).values(parameters(*NOTED)))
EXPIRED = Statement(
    select(*PAYMENT.columns)
    .where(payments.c.status == in_text(Status.INITIATED.value), payments.c.expires_at <= bindparam("now"))
    .order_by(payments.c.expires_at, payments.c.reference)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True)
)
INITIATED = Statement(
    select(*PAYMENT.columns)
    .where(
        payments.c.status == in_text(Status.INITIATED.value),
        tuple_(payments.c.expires_at, payments.c.reference) > tuple_(bindparam("until"), bindparam("reference")),
    )
    .order_by(payments.c.expires_at, payments.c.reference)
    .limit(bindparam("limit"))
)
_ATTEMPT = and_(attempts.c.reference == bindparam("reference"), attempts.c.number == bindparam("number"))
ATTEMPTS = Statement(select(attempts).where(attempts.c.reference == bindparam("reference")).order_by(attempts.c.number))
_COLUMNS = tuple(column.name for column in attempts.c)
_AT = attempts.c.last_ask_at.type
_OWNED = select(payments.c.environment).where(_REFERENCE).scalar_subquery()
ADD_ATTEMPT = Statement(insert(attempts).values(parameters(*_COLUMNS) | {"environment": func.coalesce(_OWNED, "LIVE")}))
# `begin_ask` may have moved `last_ask_at` on since the attempt was read; it never goes back.
_SAVED = (
    update(attempts)
    .where(_ATTEMPT, attempts.c.token == bindparam("was"))
    .values(
        parameters(*(name for name in _COLUMNS if name not in ("reference", "number", "environment")))
        | {"last_ask_at": func.greatest(attempts.c.last_ask_at, bindparam("last_ask_at", type_=_AT))}
    )
    .returning(attempts.c.number)
    .cte("saved")
)
SAVE_ATTEMPT = Statement(must_find(_SAVED))

HASTENED_AT_ONCE = 500
DUE_WINDOW = 1_000  # of what is due, the oldest, from which businesses take turns


def _asks(due: str, conditions: str) -> Statement:
    """Claims what is to be asked about until the instant `due`.

    Of the oldest, businesses take turns. What was chosen is looked at again under its lock, as another worker may have
    taken it meanwhile. LIMIT keeps the look-up of a payment a look-up, and `coalesce` the lock one by key: asked for
    what is due, the server could walk through all of that once for each. RETURNING comes in no order of its own.
    """
    return Statement(f"""
WITH oldest AS (
    SELECT a.reference, a.number, a.next_ask_at FROM attempts a
    WHERE a.gateway = :gateway AND a.environment = :environment AND a.next_ask_at <= {due} AND {conditions}
    ORDER BY a.next_ask_at, a.reference LIMIT {DUE_WINDOW}
), turns AS (
    SELECT o.*, row_number() OVER (PARTITION BY p.business_id ORDER BY o.next_ask_at, o.reference) AS turn
    FROM oldest o
    LEFT JOIN LATERAL (SELECT business_id FROM payments WHERE reference = o.reference LIMIT 1) p ON true
), chosen AS (
    SELECT reference, number FROM turns ORDER BY turn, next_ask_at, reference LIMIT :limit
), locked AS (
    SELECT a.reference, a.number FROM chosen c
    JOIN attempts a ON a.reference = c.reference AND a.number = c.number
    WHERE coalesce(a.next_ask_at, 'infinity') <= {due} AND {conditions}
    FOR NO KEY UPDATE OF a SKIP LOCKED
), held AS (
    UPDATE attempts a SET held_until = :until FROM locked l WHERE a.reference = l.reference AND a.number = l.number
    RETURNING {", ".join(f"a.{name}" for name in _COLUMNS)}
)
SELECT * FROM held ORDER BY next_ask_at, reference
""")  # noqa: S608 - our own words


DUE_ASKS = _asks(":now", "(a.held_until IS NULL OR a.held_until <= :now OR a.held_until > :longest)")
# Sent to a provider before `since`, and neither asked about nor held by a worker since.
ASKS_IN_THE_AIR = _asks(
    ":due",
    "a.created_at < :since AND a.state <> 'CLAIMED' AND (a.last_ask_at IS NULL OR a.last_ask_at < :since) "
    "AND (a.held_until IS NULL OR a.held_until < :held_since)",
)
# A number and no parameter: not knowing how few, the server would join all of the table.
HASTEN_ASKS = Statement(f"""
WITH later AS (
    SELECT a.reference, a.number FROM attempts a
    WHERE a.gateway = :gateway AND a.environment = :environment AND a.next_ask_at > :now
    AND (a.confirmed_at IS NULL OR a.confirmed_at > :paid_since)
    ORDER BY a.next_ask_at, a.reference LIMIT {HASTENED_AT_ONCE} FOR NO KEY UPDATE
), hastened AS (
    UPDATE attempts a SET next_ask_at = :now FROM later l WHERE a.reference = l.reference AND a.number = l.number
    RETURNING 1
)
SELECT count(*) FROM hastened
""")  # noqa: S608 - our own number
END_ASKS = Statement(
    update(attempts)
    .where(attempts.c.reference == bindparam("reference"), attempts.c.next_ask_at.is_not(None))
    .values(next_ask_at=null(), held_until=null())
)
# The first entry of each provider and environment, and no more.
OLDEST_ASK = Statement(
    """
SELECT min(first.next_ask_at) FROM unnest(CAST(:gateways AS text[])) AS provider(slug)
CROSS JOIN (VALUES ('SANDBOX'), ('LIVE')) AS environments(environment)
CROSS JOIN LATERAL (
    SELECT a.next_ask_at FROM attempts a
    WHERE a.gateway = provider.slug AND a.environment = environments.environment AND a.next_ask_at <= :now
    ORDER BY a.next_ask_at LIMIT 1
) AS first
""",
    reads=True,
)
# In an order, though any one will do: it leads by the index, also where half of the table would match.
_OPEN_ATTEMPTS = (
    select(attempts.c.reference)
    .where(attempts.c.gateway_id == bindparam("gateway_id"), text(IS_UNSETTLED))
    .order_by(attempts.c.reference)
)
_ACCOUNTS = bindparam("accounts", type_=ARRAY(Text))
_IS_OTHER = or_(func.cardinality(_ACCOUNTS) == 0, attempts.c.account != all_(_ACCOUNTS))
OPEN_ATTEMPT = Statement(_OPEN_ATTEMPTS.limit(in_text(1)))
COUNT_OPEN_ATTEMPTS = Statement(
    select(func.count()).select_from(_OPEN_ATTEMPTS.where(_IS_OTHER).limit(bindparam("most", type_=Integer)).subquery())
)
BEGIN_ASK = Statement(
    update(attempts)
    .where(
        _ATTEMPT,
        or_(
            attempts.c.last_ask_at.is_(None),
            attempts.c.last_ask_at <= bindparam("before"),
            attempts.c.last_ask_at > bindparam("last"),
        ),
    )
    .values(last_ask_at=bindparam("now"))
    .returning(attempts.c.number)
)
TRANSITIONS = Statement(
    select(*TRANSITION.columns)
    .where(transitions.c.reference == bindparam("reference"))
    .order_by(transitions.c.sequence)
)
ADD_CALL = Statement(insert(provider_calls).values(parameters(*CALL.names)))
_CALLS = select(*CALL.columns).where(provider_calls.c.reference == bindparam("reference"))
CALLS = Statement(_CALLS.order_by(provider_calls.c.id).limit(in_text(CALLS_MAX)))
LAST_ANSWER = Statement(
    _CALLS.where(provider_calls.c.word.is_not(None)).order_by(provider_calls.c.id.desc()).limit(in_text(1))
)


@cache
def _settled_with_payer(limit: int) -> Statement:
    return Statement(
        select(payments.c.reference)
        .where(text(HAS_PAYER), payments.c.settled_at < bindparam("before"))
        .order_by(payments.c.settled_at, payments.c.reference)
        .limit(in_text(limit))
        .with_for_update(key_share=True, skip_locked=True)
    )


def _of_payer() -> Statement:
    # A walk in bounded steps: an index for what is asked once a year would cost every initiation.
    step = (
        select(payments.c.reference, payments.c.customer_email)
        .where(payments.c.reference > bindparam("after"))
        .order_by(payments.c.reference)
        .limit(bindparam("limit"))
        .cte("step")
    )
    is_theirs = func.lower(step.c.customer_email) == func.lower(bindparam("email"))
    return Statement(select(func.array_agg(step.c.reference).filter(is_theirs), func.max(step.c.reference)), reads=True)


OF_PAYER = _of_payer()
_REFERENCES = any_(bindparam("references", type_=ARRAY(Text)))
CLEAR_PAYER = Statement(
    update(payments)
    .where(payments.c.reference == _REFERENCES)
    .values(dict.fromkeys((*PAYER_FIELDS, "fingerprint"), null()))
)
CLEAR_HAND_OFF = Statement(
    update(attempts).where(attempts.c.reference == _REFERENCES, attempts.c.hand_off_url != "").values(hand_off_url="")
)


# By the day in their references, which many keys share, so that its index takes a few bytes for each. LIMIT keeps the
# look-up of a payment a look-up. Keys of payments that are still open are met again each time: after years, few.
@cache
def _forget_keys(limit: int) -> Statement:
    return Statement(f"""
WITH old AS (
    SELECT k.business_id, k.environment, k.key FROM idempotency_keys k
    JOIN LATERAL (SELECT settled_at FROM payments WHERE reference = k.reference LIMIT 1) p ON p.settled_at < :before
    WHERE substr(k.reference, 5, 8) <= :day
    ORDER BY substr(k.reference, 5, 8) LIMIT {limit:d} FOR UPDATE OF k SKIP LOCKED
)
DELETE FROM idempotency_keys k USING old
WHERE k.business_id = old.business_id AND k.environment = old.environment AND k.key = old.key RETURNING k.reference
""")  # noqa: S608 - our own number


class PostgresPayments:
    def __init__(self, connection: StatementConnection, webhooks: PostgresWebhooks) -> None:
        self._connection = connection
        self._webhooks = webhooks

    async def get(self, reference: str) -> Payment | None:
        return PAYMENT.loaded(await self._connection.row(GET, reference=reference))

    async def lock(self, reference: str) -> Payment | None:
        return PAYMENT.loaded(await self._connection.row(LOCK, reference=reference))

    async def aggregate(self, reference: str) -> PaymentAggregate | None:
        return await self._aggregate(GET, reference)

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        return await self._aggregate(LOCK, reference)

    async def _aggregate(self, first: Statement, reference: str) -> PaymentAggregate | None:
        # Statements of their own, so that what is read after a lock that was waited for is younger than it.
        own = {"reference": reference}
        found, numbered, owner = await self._connection.all((first, own), (ATTEMPTS, own), (BUSINESS_OF, own))
        if not found:
            return None
        business = BUSINESS.load(owner[0]) if owner else None
        return PaymentAggregate(PAYMENT.load(found[0]), business, [_attempt(row) for row in numbered])

    async def lock_to_settle(self, reference: str) -> PaymentToSettle | None:
        own = {"reference": reference}
        # What the change will want is read in the same round trip.
        asked = ((statement, own) for statement in (LOCK, ATTEMPTS, SUBSCRIBERS_TO, ANOMALIES_OF, LAST_EVENT_BESIDE))
        found, numbered, endpoints, anomalies, last = await self._connection.all(*asked)
        if not found:
            return None
        payment = PAYMENT.load(found[0])
        self._webhooks.last_ids[payment.business_id, payment.environment] = last[0][0] if last else None
        attempts = [_attempt(row) for row in numbered]
        return PaymentToSettle(payment, attempts, ENDPOINT.all(endpoints), ANOMALY.all(anomalies))

    async def add(self, payment: Payment) -> bool:
        try:
            added = await self._connection.row(ADD, rows=f"[{encoded(payment).decode()}]", dates=False)
        except Taken:
            raise ReferenceTaken(payment.reference) from None
        if added is not None and added[1] is None:
            raise ReferenceTaken(payment.reference)
        return added is not None

    async def save(self, payment: Payment, transition: Transition) -> None:
        moved = {name: stored(getattr(payment, name)) for name in MOVING}
        own = {f"own_{name}": value for name, value in TRANSITION.values(transition).items()}
        stood = {"from_status": transition.from_status.value, "before": transition.sequence - 1}
        stale = Conflict("the payment was moved by another transaction")
        self._connection.send(MOVE, or_else=stale, reference=payment.reference, **moved, **own, **stood)

    async def note(self, payment: Payment) -> None:
        self._connection.send(NOTE, **{name: getattr(payment, name) for name in ("reference", *NOTED)})

    async def expired(self, now: datetime, limit: int) -> list[Payment]:
        return PAYMENT.all(await self._connection.rows(EXPIRED, now=now, limit=limit))

    async def initiated(self, until: datetime, reference: str, limit: int) -> list[Payment]:
        return PAYMENT.all(await self._connection.rows(INITIATED, until=until, reference=reference, limit=limit))

    async def attempts(self, reference: str) -> list[Attempt]:
        return [_attempt(row) for row in await self._connection.rows(ATTEMPTS, reference=reference)]

    async def add_attempt(self, attempt: Attempt) -> None:
        self._connection.send(ADD_ATTEMPT, **_attempt_values(attempt))

    async def save_attempt(self, attempt: Attempt, token: str) -> None:
        taken_over = Conflict("the attempt was taken over by another transaction")
        self._connection.send(SAVE_ATTEMPT, or_else=taken_over, was=token, **_attempt_values(attempt))

    async def due_asks(
        self,
        gateway: str,
        environment: Environment,
        now: datetime,
        limit: int,
        hold: timedelta,
        since: datetime = EPOCH,
    ) -> list[Attempt]:
        values = {"gateway": gateway, "environment": environment.value, "now": now, "until": now + hold, "limit": limit}
        rows = await self._connection.rows(DUE_ASKS, **values, longest=now + hold + CLOCK_SLACK)
        due = since + FIRST_ASK_MAX
        if len(rows) < limit and now < due:
            del values["now"]
            values |= {"since": since, "due": due, "held_since": since + hold, "limit": limit - len(rows)}
            rows += await self._connection.rows(ASKS_IN_THE_AIR, **values)
        return [_attempt(row) for row in rows]

    async def hasten_asks(self, gateway: str, environment: Environment, now: datetime) -> int:
        paid_since = now - HASTEN_PAID
        values = {"gateway": gateway, "environment": environment.value, "now": now, "paid_since": paid_since}
        return await self._connection.value(HASTEN_ASKS, **values) or 0

    async def end_asks(self, reference: str) -> None:
        self._connection.send(END_ASKS, reference=reference)

    async def oldest_ask(self, gateways: Collection[str], now: datetime) -> datetime | None:
        return await self._connection.value(OLDEST_ASK, gateways=list(gateways), now=now)

    async def has_open_attempts(self, gateway_id: str) -> bool:
        return await self._connection.row(OPEN_ATTEMPT, gateway_id=gateway_id) is not None

    async def open_attempts(self, gateway_id: str, most: int, other_than: Collection[str] = ()) -> int:
        values = {"gateway_id": gateway_id, "most": most, "accounts": list(other_than)}
        return await self._connection.value(COUNT_OPEN_ATTEMPTS, **values) or 0

    async def transitions(self, reference: str) -> list[Transition]:
        return TRANSITION.all(await self._connection.rows(TRANSITIONS, reference=reference))

    async def add_call(self, call: ProviderCall) -> None:
        self._connection.send(ADD_CALL, **CALL.values(call))

    async def calls(self, reference: str) -> list[ProviderCall]:
        return CALL.all(await self._connection.rows(CALLS, reference=reference))

    async def last_answer(self, reference: str) -> ProviderCall | None:
        return CALL.loaded(await self._connection.row(LAST_ANSWER, reference=reference))

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        return [row[0] for row in await self._connection.rows(_settled_with_payer(limit), before=before)]

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        [(found, last)] = await self._connection.rows(OF_PAYER, email=email, after=after, limit=limit)
        return sorted(found or ()), last

    async def clear_payer(self, references: Sequence[str]) -> None:
        self._connection.send(CLEAR_PAYER, references=list(references))
        self._connection.send(CLEAR_HAND_OFF, references=list(references))

    async def forget_keys(self, before: datetime, limit: int) -> int:
        return len(await self._connection.rows(_forget_keys(limit), before=before, day=f"{before:%Y%m%d}"))


def _attempt(row: Any) -> Attempt:
    values = dict(zip(_COLUMNS, row, strict=True))
    del values["held_until"], values["environment"]
    kind, url = values.pop("hand_off_kind"), values.pop("hand_off_url")
    values["state"] = AttemptState(values["state"])
    fields = {"kind": HandOffKind(kind), "checkout_url": url} if url is not None else None
    return restored(Attempt, {**values, "hand_off": restored(HandOff, fields) if fields else None})


def _attempt_values(attempt: Attempt) -> dict[str, Any]:
    own = [c.name for c in attempts.c if not c.name.startswith(("hand_off_", "held_", "environment"))]
    hand_off = attempt.hand_off
    return {
        **{name: getattr(attempt, name) for name in own},
        "held_until": None,
        "state": attempt.state.value,
        "hand_off_kind": hand_off.kind.value if hand_off else None,
        "hand_off_url": hand_off.checkout_url if hand_off else None,
    }
