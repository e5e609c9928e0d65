"""Payments as rows: transitions, calls of providers, requests to end one by hand, and what is left of archived ones."""

# ruff: noqa: S608 - only our own column names are put into the texts

import msgspec
from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.errors import UNSTORABLE, Taken
from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.accounts import BUSINESS
from payagg.adapters.postgres.repositories.anomalies import ANOMALY
from payagg.adapters.postgres.repositories.anomalies import OF_PAYMENT as ANOMALIES_OF
from payagg.adapters.postgres.repositories.attempts import ATTEMPTS, attempt_of
from payagg.adapters.postgres.repositories.endpoints import SUBSCRIBERS_TO, subscribers_in
from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.repositories.webhook_events import PostgresWebhookEvents
from payagg.adapters.postgres.schema.tables import payments
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import Conflict, ReferenceTaken
from payagg.application.ports.payments import LockedPayment, PaymentAggregate, ProviderCall
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import AttemptState
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Payment, Status, Transition, Trigger
from payagg.domain.resolution import Resolution
from payagg.domain.values import Environment

PAYMENT = RowMap(Payment, "payments", environment=Environment, status=Status)
# What `note` may add, to a final one too.
NOTED = ("sequence", "fee", "net_amount", "has_adjustments")

_TYPES = {"amount": "bigint", "metadata": "jsonb", "sequence": "smallint", "is_test": "boolean"}
# A new payment's columns; the rest is set later.
_NEW = tuple(name for name in PAYMENT.names if name not in NOTED or name == "sequence")
_GIVEN = ", ".join(f"{name} {'timestamptz' if name.endswith('_at') else _TYPES.get(name, 'text')}" for name in _NEW)
_CACHED = ("key_id", "key_status", "business_status", "kyc_status")
_NAMES = ", ".join(_NEW)
_STORED = {"fingerprint": "decode(fingerprint, 'base64')"} | {
    name: f"{name} + waited" for name in ("created_at", "updated_at", "expires_at")
}
_DATED = ", ".join(_STORED.get(name, name) for name in _NEW)

AMOUNT_DIGEST = "substr(sha256(convert_to(reference || ' ' || amount, 'UTF8')), 1, 8)"

# Who won comes back with its dates, a reference that exists already without: no idempotency key may stay behind without
# its payment, so such a row is left out from the start. One that another transaction adds at this moment breaks the
# whole statement instead. Rows go in by key, so that two processes never wait for each other in a circle. What a caller
# cached of its key is compared and never judged here: the rule is the domain's alone.
#
# `dates`: the clock of those who initiate is the database's, and the database has the last word: the payment is dated
# as it is stored, after its transaction got a number, by which lists see that something earlier may still come (see
# docs/decisions.md). LIMIT keeps the look-up of a reference a look-up, however few payments there are.
ADD = Statement(f"""
WITH asked AS MATERIALIZED (
    SELECT *, CASE WHEN CAST(:dates AS boolean) THEN clock_timestamp() - created_at ELSE interval '0' END AS waited
    FROM json_to_recordset(CAST(:rows AS json)) AS row ({_GIVEN}, {" text, ".join(_CACHED)} text)
    LEFT JOIN LATERAL (
        SELECT true AS is_taken FROM payments p WHERE p.reference = row.reference LIMIT 1
    ) AS known ON true
    WHERE (NOT CAST(:dates AS boolean) OR pg_current_xact_id() IS NOT NULL)
    AND (key_id IS NULL OR (key_status, business_status, kyc_status) = (
        SELECT k.status, b.status, b.kyc_status FROM api_keys k JOIN businesses b ON b.id = k.business_id
        WHERE k.id = key_id
    ))
), given AS (
    SELECT * FROM asked WHERE is_taken IS NULL
), keyed AS (
    INSERT INTO idempotency_keys (business_id, environment, key, reference)
    SELECT business_id, environment, idempotency_key, reference FROM given WHERE idempotency_key IS NOT NULL
    ORDER BY business_id, environment, idempotency_key
    ON CONFLICT DO NOTHING RETURNING reference
), added AS (
    INSERT INTO payments ({_NAMES}, amount_digest)
    SELECT {_DATED}, {AMOUNT_DIGEST} FROM given
    WHERE idempotency_key IS NULL OR reference IN (SELECT reference FROM keyed)
    ORDER BY reference
    RETURNING reference, created_at, expires_at
)
SELECT reference, created_at, expires_at FROM added
UNION ALL SELECT reference, NULL, NULL FROM asked WHERE is_taken
""")


def encode_row(payment: Payment, cached: KeyHolder | None = None) -> bytes:
    """The row of `given` as a JSON object; raises VALIDATION_ERROR for text that is not Unicode."""
    try:
        row = msgspec.json.encode(payment)
    except (UnicodeEncodeError, OverflowError):
        raise Refusal(ErrorCode.VALIDATION_ERROR, UNSTORABLE) from None
    if cached is None:
        return row
    known = dict(zip(_CACHED, (cached.key.id, *cached.key_state), strict=True))
    return row[:-1] + b"," + msgspec.json.encode(known)[1:]


TRANSITION = RowMap(Transition, "transitions", from_status=Status, to_status=Status, trigger=Trigger)
# What `save` may change; the rest of a payment is fixed, and the database says so too.
MOVING = ("status", "gateway", "failure_reason", "sequence", "updated_at", "settled_at", "fee", "net_amount")
GET = PAYMENT.query("WHERE reference = :reference")
LOCK = PAYMENT.query("WHERE reference = :reference FOR NO KEY UPDATE")
BUSINESS_OF = BUSINESS.query("JOIN payments ON payments.business_id = businesses.id WHERE reference = :reference")
_MOVED = (
    PAYMENT.update(*MOVING, key=["reference"])
    .where(payments.c.status == bindparam("from_status"), payments.c.sequence == bindparam("before"))
    .returning(payments.c.reference)
    .cte("moved")
)
# The transition is written only if the payment is still as read.
_NOTED = (
    insert(TRANSITION.table)
    .from_select(
        TRANSITION.columns,
        select(*(bindparam(c.name, type_=c.type).label(c.name) for c in TRANSITION.columns)).select_from(_MOVED),
    )
    .returning(TRANSITION.table.c.reference)
    .cte("noted")
)
MOVE = Statement(must_find(_NOTED))
NOTE = Statement(PAYMENT.update(*NOTED, key=["reference"]))
TRANSITIONS = TRANSITION.query("WHERE reference = :reference ORDER BY sequence")


PART = RowMap(ArchivePart, "archive_parts")
FIND_ARCHIVED = Statement(f"""
SELECT a.attempts, a.paid, {PART.listed} FROM archived_payments a JOIN archive_parts ON archive_parts.number = a.part
WHERE a.reference = :reference
""")


class PostgresPayments:
    def __init__(self, connection: StatementConnection, events: PostgresWebhookEvents) -> None:
        self._connection = connection
        self._events = events

    async def get(self, reference: str) -> Payment | None:
        return PAYMENT.from_row(await self._connection.row(GET, reference=reference))

    async def lock(self, reference: str) -> Payment | None:
        return PAYMENT.from_row(await self._connection.row(LOCK, reference=reference))

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        # Separate statements, so a read after a lock's wait sees a newer snapshot.
        own = {"reference": reference}
        found, numbered, owner = await self._connection.all((LOCK, own), (ATTEMPTS, own), (BUSINESS_OF, own))
        if not found:
            return None
        business = BUSINESS.load(owner[0]) if owner else None
        return PaymentAggregate(PAYMENT.load(found[0]), business, [attempt_of(row) for row in numbered])

    async def lock_for_status(self, reference: str) -> LockedPayment | None:
        own = {"reference": reference}
        # The rows that the change needs are read in the same round trip.
        asked = ((statement, own) for statement in (LOCK, ATTEMPTS, SUBSCRIBERS_TO, ANOMALIES_OF))
        found, numbered, beside, anomalies = await self._connection.all(*asked)
        if not found:
            return None
        payment = PAYMENT.load(found[0])
        self._events.last_ids[payment.business_id, payment.environment] = beside[0][0]
        attempts = [attempt_of(row) for row in numbered]
        subscribers = subscribers_in(own for _, *own in beside if own[0] is not None)
        return LockedPayment(payment, attempts, subscribers, ANOMALY.all(anomalies))

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

    async def archived(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None:
        row = await self._connection.row(FIND_ARCHIVED, reference=reference)
        if row is None:
            return None
        attempts, paid, *own = row
        # One that was written before ids were kept has two words; an id may have spaces, and never a comma.
        words = (f"{one} ".split(" ", 2) for one in attempts.split(",") if one)
        part = PART.load(own)
        tried = tuple((gateway, AttemptState(state), paid_by.strip() or None) for gateway, state, paid_by in words)
        return ArchivedPayment(reference, part.number, tried, paid), part


CALL = RowMap(ProviderCall, "provider_calls")
CALLS_MAX = 1_000
ADD_CALL = Statement(CALL.insert())
CALLS = CALL.query(f"WHERE reference = :reference ORDER BY id LIMIT {CALLS_MAX}")
LAST_ANSWER = CALL.query("WHERE reference = :reference AND word IS NOT NULL ORDER BY id DESC LIMIT 1")


class PostgresProviderCalls(PostgresRepository):
    async def add(self, call: ProviderCall) -> None:
        self._connection.send(ADD_CALL, **CALL.values(call))

    async def of_payment(self, reference: str) -> list[ProviderCall]:
        return CALL.all(await self._connection.rows(CALLS, reference=reference))

    async def last_answer(self, reference: str) -> ProviderCall | None:
        return CALL.from_row(await self._connection.row(LAST_ANSWER, reference=reference))


RESOLUTION = RowMap(Resolution, "resolutions")
RESOLUTIONS_MAX = 100
CONFIRMING = ("confirmed_by", "confirmed_at")

ADD_RESOLUTION = Statement(RESOLUTION.insert())
LATEST_RESOLUTION = RESOLUTION.query("WHERE reference = :reference ORDER BY id DESC LIMIT 1")
RESOLUTIONS = RESOLUTION.query(f"WHERE reference = :reference ORDER BY id LIMIT {RESOLUTIONS_MAX}")
CONFIRM = Statement(RESOLUTION.update(*CONFIRMING, key=["reference", "id"]))


class PostgresResolutions(PostgresRepository):
    async def add(self, resolution: Resolution) -> None:
        self._connection.send(ADD_RESOLUTION, **RESOLUTION.values(resolution))

    async def latest(self, reference: str) -> Resolution | None:
        return RESOLUTION.from_row(await self._connection.row(LATEST_RESOLUTION, reference=reference))

    async def of_payment(self, reference: str) -> list[Resolution]:
        return RESOLUTION.all(await self._connection.rows(RESOLUTIONS, reference=reference))

    async def confirm(self, resolution: Resolution) -> None:
        changes = {name: getattr(resolution, name) for name in CONFIRMING}
        self._connection.send(CONFIRM, reference=resolution.reference, id=resolution.id, **changes)
