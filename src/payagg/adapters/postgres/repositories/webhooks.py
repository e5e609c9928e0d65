"""Endpoints, events and deliveries as rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ARRAY, Text, and_, any_, case, insert, literal, not_, null, or_, select, text, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from payagg.adapters.postgres.repositories.rows import RowMap
from payagg.adapters.postgres.schema.tables import deliveries, events, webhook_endpoints
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, DeliveryStatus, Event, WebhookEndpoint

ENDPOINTS_MAX = 1_000  # listed; only five can be active, so the rest are switched off
OF_PAYMENT_MAX = 1_000
# Between an event's id being drawn and its transaction being seen to run; covers clocks a little apart.
SETTLE = timedelta(seconds=2)

ENDPOINT = RowMap(WebhookEndpoint, webhook_endpoints, environment=Environment)
EVENT = RowMap(Event, events, environment=Environment)
DELIVERY = RowMap(Delivery, deliveries, {"partition": "lane"}, environment=Environment, status=DeliveryStatus)
# Moved by the queue alone.
_COUNTERS = ("failing_since", "successful", "failed")

# The instant before which every event is visible. An event id carries the time it was drawn, inside a transaction
# that already held a row lock and so an xid; while such a transaction is open, nothing younger than it is shown.
_HORIZON = text("""
    SELECT least(clock_timestamp(), min(xact_start)) FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
""")
_TOTAL = text("""
    SELECT e.successful + e.failed - e.purged
         + (SELECT count(*) FROM deliveries d WHERE d.lane = e.id AND d.status = 'PENDING')
    FROM webhook_endpoints e WHERE e.id = :endpoint_id
""")


class PostgresWebhooks:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def endpoints(self, business_id: str) -> list[WebhookEndpoint]:
        own = webhook_endpoints.c
        query = (
            select(*ENDPOINT.columns)
            .where(own.business_id == business_id)
            .order_by(own.is_active.desc(), own.created_at.desc(), own.id.desc())
            .limit(ENDPOINTS_MAX)
        )
        found = [ENDPOINT.load(row) for row in await self._connection.execute(query)]
        return sorted(found, key=lambda endpoint: (endpoint.created_at, endpoint.id))

    async def subscribers(self, business_id: str, environment: Environment) -> list[WebhookEndpoint]:
        own = webhook_endpoints.c
        query = (
            select(*ENDPOINT.columns)
            .where(own.business_id == business_id, own.environment == environment.value, own.is_active)
            .order_by(own.created_at, own.id)
            .limit(ENDPOINTS_MAX)
        )
        return [ENDPOINT.load(row) for row in await self._connection.execute(query)]

    async def endpoint(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return await self._endpoint(business_id, endpoint_id, lock=True)

    async def find_endpoint(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return await self._endpoint(business_id, endpoint_id, lock=False)

    async def _endpoint(self, business_id: str, endpoint_id: str, *, lock: bool) -> WebhookEndpoint | None:
        own = webhook_endpoints.c
        query = select(*ENDPOINT.columns).where(own.id == endpoint_id, own.business_id == business_id)
        row = (await self._connection.execute(query.with_for_update() if lock else query)).first()
        return ENDPOINT.load(row) if row is not None else None

    async def add_endpoint(self, endpoint: WebhookEndpoint) -> None:
        await self._connection.execute(insert(webhook_endpoints).values(**ENDPOINT.values(endpoint)))

    async def save_endpoint(self, endpoint: WebhookEndpoint) -> None:
        own = webhook_endpoints.c
        values = {name: value for name, value in ENDPOINT.values(endpoint).items() if name not in _COUNTERS}
        # The right-hand sides see the row as it was: a new address or an activation starts a new run of failures.
        restarted = or_(own.url != endpoint.url, and_(not_(own.is_active), literal(endpoint.is_active)))
        values["failing_since"] = case((restarted, null()), else_=own.failing_since)
        await self._connection.execute(update(webhook_endpoints).where(own.id == endpoint.id).values(**values))

    async def emit(self, event: Event, deliveries_: Sequence[Delivery]) -> None:
        await self._connection.execute(insert(events).values(**EVENT.values(event)))
        if deliveries_:
            rows = [DELIVERY.values(delivery) for delivery in deliveries_]
            await self._connection.execute(insert(deliveries).values(rows))

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        total = int((await self._connection.execute(_TOTAL, {"endpoint_id": endpoint_id})).scalar_one())
        if offset >= total:
            return [], total
        own = deliveries.c
        # The page is found in the index alone, so a deep one does not visit the rows it skips.
        page = (
            select(own.id)
            .where(own.endpoint_id == endpoint_id, true() if after is None else own.id < after)
            .order_by(own.id.desc())
            .offset(offset)
            .limit(limit)
            .subquery()
        )
        query = (
            select(*DELIVERY.columns)
            .join(page, own.id == page.c.id)
            .where(own.endpoint_id == endpoint_id)
            .order_by(own.id.desc())
        )
        return [DELIVERY.load(row) for row in await self._connection.execute(query)], total

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        own = deliveries.c
        query = select(*DELIVERY.columns).where(own.endpoint_id == endpoint_id, own.id == delivery_id)
        row = (await self._connection.execute(query.with_for_update())).first()
        return DELIVERY.load(row) if row is not None else None

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        if delivery.lease_until is not None and delivery.lease_until > now:
            return
        counters = webhook_endpoints.c
        recount = (
            update(webhook_endpoints)
            .where(counters.id == delivery.endpoint_id)
            .values(
                successful=counters.successful - int(delivery.status is DeliveryStatus.DELIVERED),
                failed=counters.failed - int(delivery.status is DeliveryStatus.FAILED),
            )
        )
        own = deliveries.c
        again = (
            update(deliveries)
            .where(own.reference == delivery.reference, own.id == delivery.id)
            .values(status=DeliveryStatus.PENDING.value, next_attempt_at=now, lease_until=None, token=None)
        )
        await self._connection.execute(recount)
        await self._connection.execute(again)

    async def events(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        # First the horizon, then a younger snapshot: what is older than the horizon is visible in it.
        horizon: datetime = (await self._connection.execute(_HORIZON)).scalar_one() - SETTLE
        own = events.c
        query = select(*EVENT.columns).where(
            own.business_id == business_id, own.environment == environment.value, own.id < id_at("evt", horizon)
        )
        if after is not None:
            query = query.where(own.id > after)
        return [EVENT.load(row) for row in await self._connection.execute(query.order_by(own.id).limit(limit))]

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]:
        of_reference = select(*EVENT.columns).where(events.c.reference == reference).order_by(events.c.sequence)
        sent = select(*DELIVERY.columns).where(deliveries.c.reference == reference).order_by(deliveries.c.id)
        found = [EVENT.load(row) for row in await self._connection.execute(of_reference.limit(OF_PAYMENT_MAX))]
        return found, [DELIVERY.load(row) for row in await self._connection.execute(sent.limit(OF_PAYMENT_MAX))]

    async def events_of(self, references: Sequence[str]) -> list[Event]:
        theirs = events.c.reference == any_(literal(list(references), ARRAY(Text)))
        query = select(*EVENT.columns).where(theirs).with_for_update()
        return [EVENT.load(row) for row in await self._connection.execute(query)]

    async def save_bodies(self, events_: Sequence[Event]) -> None:
        for event in events_:
            own = and_(events.c.reference == event.reference, events.c.sequence == event.sequence)
            await self._connection.execute(update(events).where(own).values(body=event.body))


def id_at(prefix: str, at: datetime) -> str:
    """A string just below every id drawn from the instant `at` on (see Entropy.id)."""
    return f"{prefix}_{int(at.timestamp() * 1000):012x}"
