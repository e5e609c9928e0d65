"""Events and their deliveries as rows. Large metadata, shared by a payment's events, is stored once and put back on
reading. A null replaces it, so the stored body stays JSON."""

# ruff: noqa: S608 - our own words

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import bindparam, update
from sqlalchemy.dialects.postgresql import insert

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.repositories.rows import RowMap, parameters
from payagg.adapters.postgres.schema.tables import metadata
from payagg.adapters.postgres.statement import Statement
from payagg.domain.delivery import Delivery, DeliveryStatus, Event, attempts_before_redelivery
from payagg.domain.values import CLOCK_SLACK, Environment

APART_FROM = 1_000  # bytes of metadata; a row of its own costs a tenth of that
NULL = b"null"


class _Data(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(NULL)


class _Body(msgspec.Struct):
    data: _Data


_DECODER = msgspec.json.Decoder(_Body)


def split(body: bytes) -> tuple[dict[str, Any], bytes | None]:
    """The columns that hold a body, and the metadata that lies apart, None where it stays in the body."""
    whole = {"body": body, "metadata_at": None, "metadata_digest": None, "body_digest": _digest(body)}
    if len(body) <= APART_FROM:
        return whole, None
    try:
        encoded = bytes(_DECODER.decode(body).data.metadata)
    except msgspec.DecodeError:
        return whole, None
    if len(encoded) <= APART_FROM:
        return whole, None
    at = body.index(encoded)
    cut = body[:at] + NULL + body[at + len(encoded) :]
    own = {"metadata_at": at, "metadata_digest": sha256(encoded).digest(), "body_digest": _digest(cut)}
    return {"body": cut, **own}, encoded


def _digest(stored: bytes) -> bytes:
    """For `payagg doctor`."""
    return sha256(stored).digest()[:8]


def whole_body(event: str) -> str:
    """SQL for the body as it was before `split`; `event` names a row of events. If the metadata is lost, the null
    stays: an event must not fail for it."""
    return f"""CASE WHEN {event}.metadata_at IS NULL THEN {event}.body ELSE
    substring({event}.body FROM 1 FOR {event}.metadata_at)
    || coalesce((SELECT m.encoded FROM event_metadata m
        WHERE m.reference = {event}.reference AND m.digest = {event}.metadata_digest), CAST('{NULL.decode()}' AS bytea))
    || substring({event}.body FROM {event}.metadata_at + {len(NULL) + 1})
END"""


_KEEP = insert(metadata.tables["event_metadata"]).values(parameters("reference", "digest", "encoded"))
# Writes what is there already, for the lock: a purge that has it waits for this event, or is waited for.
KEEP_METADATA = Statement(
    _KEEP.on_conflict_do_update(index_elements=["reference", "digest"], set_={"encoded": _KEEP.excluded.encoded})
)
LOCK_METADATA = Statement(
    "SELECT FROM event_metadata WHERE reference = ANY(:references) ORDER BY reference, digest FOR UPDATE"
)
# Metadata without events. After LOCK_METADATA, so an event added since is seen.
PURGE_METADATA = Statement("""
DELETE FROM event_metadata m WHERE m.reference = ANY(CAST(:references AS text[])) AND NOT EXISTS (
    SELECT FROM events v WHERE v.reference = m.reference AND v.metadata_digest = m.digest
)
""")


# The transactions that may still commit what no list shows yet, and since when each runs.
# The server does not tell one role when another's transaction began, not even where both are ours, as after a change of
# the password by a second role. Who may add payments counts as ours. No transaction of ours lasts longer than this: see
# TIMEOUTS.
BEGAN = "CASE WHEN backend_type IS NULL THEN now() - interval '1 minute' ELSE xact_start END"
WRITING = """pg_stat_activity
    WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    AND (backend_type IS NOT NULL OR has_table_privilege(usesysid, 'payments', 'INSERT'))"""
OF_PAYMENT_MAX = 1_000
PAST_EVENTS = "evt_g"  # every id of an event is below it
# Between an event's id being drawn and its transaction being seen to run; covers clocks a little apart.
SETTLE = timedelta(seconds=2)
EVENT = RowMap(Event, "events", environment=Environment)
_APART = ("metadata_at", "metadata_digest", "body_digest")
_WHOLE_EVENT = ", ".join(whole_body("events") if name == "body" else f"events.{name}" for name in EVENT.names)
DELIVERY = RowMap(Delivery, "deliveries", {"partition": "lane"}, environment=Environment, status=DeliveryStatus)
ADD_EVENT = Statement(insert(EVENT.table).values(parameters(*EVENT.names, *_APART)))
ADD_DELIVERY = Statement(DELIVERY.insert())
# The instant before which every event is visible. An event id carries the time it was drawn, inside a transaction
# that already held a row lock and so an xid; while such a transaction is open, nothing younger than it is shown.
# Where the clock went back, ids go on behind the last one (`last_id`) and have no instant: they are shown once every
# transaction has ended that may have read another last one. The second column is the present.
HORIZON = Statement(f"SELECT least(clock_timestamp(), min({BEGAN})), clock_timestamp() FROM {WRITING}")
LOOKS, BETWEEN_LOOKS = 10, 0.02  # seconds
TOTAL = Statement("""
    SELECT e.successful + e.failed - e.purged
         + (SELECT count(*) FROM deliveries d WHERE d.lane = e.id AND d.status = 'PENDING')
    FROM webhook_endpoints e WHERE e.id = :endpoint_id
    """)


PAST_DELIVERIES = "dlv_g"  # above every id
# The page is found in the index alone, so a deep one does not visit the rows it skips.
LOG = DELIVERY.query("""
JOIN (SELECT id FROM deliveries WHERE endpoint_id = :endpoint_id AND id < :after
      ORDER BY id DESC OFFSET :offset LIMIT :limit) AS page ON page.id = deliveries.id
WHERE endpoint_id = :endpoint_id ORDER BY deliveries.id DESC
""")
LOCK_DELIVERY = DELIVERY.query("WHERE endpoint_id = :endpoint_id AND id = :id FOR UPDATE")
LOCK_OWN_DELIVERY = DELIVERY.query("WHERE reference = :reference AND id = :id FOR UPDATE")
RECOUNT = Statement("""
UPDATE webhook_endpoints SET successful = successful - :was_delivered, failed = failed - :was_failed
WHERE id = :endpoint_id
""")
REDELIVER = Statement("""
UPDATE deliveries SET status = 'PENDING', attempts = :attempts, next_attempt_at = :now, lease_until = NULL, token = NULL
WHERE reference = :of_reference AND id = :delivery_id
""")
# As one range of the index, from one place in it to another, and the business unknown to the planner: expecting few
# of its events, the server would sort all that a large one has in all partitions instead of merging them.
_PLACE = "(business_id, environment, id)"
_OF_BUSINESS = "(SELECT CAST(:business_id AS text)), :environment"


def last_event(owner: str) -> str:
    """SQL for the last event's id; `owner` are the expressions of a business and an environment. It is the last place
    that is not above all of theirs: a second bound would be compiled for each partition."""
    backwards = "business_id DESC, environment DESC, id DESC"
    return f"""SELECT id FROM (
    SELECT business_id, environment, id FROM events WHERE {_PLACE} < ({owner}, '{PAST_EVENTS}')
    ORDER BY {backwards} LIMIT 1
) AS place WHERE (business_id, environment) = ({owner})"""


EVENTS = Statement(f"""
SELECT {_WHOLE_EVENT} FROM events WHERE {_PLACE} > ({_OF_BUSINESS}, :after) AND {_PLACE} < ({_OF_BUSINESS}, :before)
ORDER BY business_id, environment, id LIMIT :limit
""")
LAST_EVENT = Statement(last_event(_OF_BUSINESS))
EVENTS_OF_PAYMENT = Statement(
    f"SELECT {_WHOLE_EVENT} FROM events WHERE reference = :reference ORDER BY sequence LIMIT {OF_PAYMENT_MAX}"
)
DELIVERIES_OF_PAYMENT = DELIVERY.query(f"WHERE reference = :reference ORDER BY id LIMIT {OF_PAYMENT_MAX}")
EVENTS_OF = Statement(f"SELECT {_WHOLE_EVENT} FROM events WHERE reference = ANY(:references) FOR UPDATE")
SAVE_BODY = Statement(
    update(EVENT.table)
    .where(EVENT.table.c.reference == bindparam("of_reference"), EVENT.table.c.sequence == bindparam("of_sequence"))
    .values(parameters("body", *_APART))
)


def id_at(prefix: str, at: datetime) -> str:
    """A string just below every id drawn from the instant `at` on (see Entropy.id)."""
    return f"{prefix}_{int(at.timestamp() * 1000):012x}"


class PostgresWebhookEvents:
    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection
        # The last event's id by business and environment, read once: what a transaction adds becomes visible together,
        # and needs no order of its own.
        self.last_ids: dict[tuple[str, Environment], str | None] = {}

    async def last_id(self, business_id: str, environment: Environment) -> str | None:
        owner = (business_id, environment)
        if owner not in self.last_ids:
            values = {"business_id": business_id, "environment": environment.value}
            self.last_ids[owner] = await self._connection.value(LAST_EVENT, **values)
        return self.last_ids[owner]

    async def emit(self, event: Event, deliveries_: Sequence[Delivery]) -> None:
        self._connection.send(ADD_EVENT, **EVENT.values(event) | self._body(event))
        for delivery in deliveries_:
            self._connection.send(ADD_DELIVERY, **DELIVERY.values(delivery))

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        values = {"endpoint_id": endpoint_id, "offset": offset, "limit": limit, "after": after or PAST_DELIVERIES}
        asked = (TOTAL, {"endpoint_id": endpoint_id}), (LOG, values)
        totals, rows = await self._connection.all(*asked)
        return DELIVERY.all(rows), sum(total for (total,) in totals)

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        return DELIVERY.from_row(await self._connection.row(LOCK_DELIVERY, endpoint_id=endpoint_id, id=delivery_id))

    async def own_delivery(self, reference: str, delivery_id: str) -> Delivery | None:
        found = DELIVERY.from_row(await self._connection.row(LOCK_OWN_DELIVERY, reference=reference, id=delivery_id))
        return found if found is not None and found.endpoint_id is None else None

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        if delivery.lease_until is not None and delivery.lease_until > now:
            return
        if delivery.endpoint_id is not None:
            self._connection.send(
                RECOUNT,
                endpoint_id=delivery.endpoint_id,
                was_delivered=int(delivery.status is DeliveryStatus.DELIVERED),
                was_failed=int(delivery.status is DeliveryStatus.FAILED),
            )
        values: dict[str, Any] = {"now": now, "attempts": attempts_before_redelivery(delivery, now)}
        self._connection.send(REDELIVER, of_reference=delivery.reference, delivery_id=delivery.id, **values)

    async def page(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        # The horizon first, then a newer snapshot: everything older than the horizon is visible in it.
        own = {"business_id": business_id, "environment": environment.value}
        last, [(horizon, now)] = await self._connection.all((LAST_EVENT, own), (HORIZON, {}))
        before = id_at("evt", horizon - SETTLE)
        if last and last[0][0] > id_at("evt", now + CLOCK_SLACK) and await self._have_ended(now):
            before = f"{last[0][0]}0"  # the next text after that id
        rows = await self._connection.rows(EVENTS, **own, before=before, after=after or "", limit=limit)
        return EVENT.all(rows)

    async def _have_ended(self, since: datetime) -> bool:
        """Whether all transactions have ended that wrote at `since`; short ones are waited for."""
        for _ in range(LOOKS):
            await asyncio.sleep(BETWEEN_LOOKS)
            [(horizon, _)] = await self._connection.rows(HORIZON)
            if horizon > since:
                return True
        return False

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]:
        found = EVENT.all(await self._connection.rows(EVENTS_OF_PAYMENT, reference=reference))
        return found, DELIVERY.all(await self._connection.rows(DELIVERIES_OF_PAYMENT, reference=reference))

    async def of_payments(self, references: Sequence[str]) -> list[Event]:
        return EVENT.all(await self._connection.rows(EVENTS_OF, references=list(references)))

    async def save_bodies(self, events_: Sequence[Event]) -> None:
        for event in events_:
            values = {"of_reference": event.reference, "of_sequence": event.sequence, **self._body(event)}
            self._connection.send(SAVE_BODY, **values)
        references = sorted({event.reference for event in events_})
        self._connection.send(LOCK_METADATA, references=references)
        self._connection.send(PURGE_METADATA, references=references)

    def _body(self, event: Event) -> dict[str, Any]:
        """The columns of its body; what lies apart goes before it."""
        columns, metadata = split(event.body)
        if metadata is not None:
            digest = columns["metadata_digest"]
            self._connection.send(KEEP_METADATA, reference=event.reference, digest=digest, encoded=metadata)
        return columns
