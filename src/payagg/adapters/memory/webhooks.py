"""Endpoints, events and deliveries in memory."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from payagg.adapters.memory.state import State
from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, DeliveryStatus, Event, WebhookEndpoint


@dataclass(frozen=True)
class MemoryWebhooks:
    state: State

    async def endpoints(self, business_id: str) -> list[WebhookEndpoint]:
        every = [endpoint for endpoint in self.state.endpoints.values() if endpoint.id not in self.state.removed]
        own = [endpoint for endpoint in every if endpoint.business_id == business_id]
        return sorted(own, key=lambda endpoint: (endpoint.created_at, endpoint.id))

    async def subscribers(self, business_id: str, environment: Environment) -> list[WebhookEndpoint]:
        own = await self.endpoints(business_id)
        return [endpoint for endpoint in own if endpoint.is_active and endpoint.environment is environment]

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[WebhookEndpoint]]:
        found = {owner: await self.subscribers(*owner) for owner in owners}
        return {owner: endpoints for owner, endpoints in found.items() if endpoints}

    async def endpoint(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return await self.find_endpoint(business_id, endpoint_id)

    async def find_endpoint(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return next((one for one in await self.endpoints(business_id) if one.id == endpoint_id), None)

    async def add_endpoint(self, endpoint: WebhookEndpoint) -> None:
        self.state.ensure_still(endpoint.business_id)
        self.state.endpoints[endpoint.id] = endpoint

    async def save_endpoint(self, endpoint: WebhookEndpoint) -> None:
        self.state.ensure_still(endpoint.business_id)
        stored = self.state.endpoints[endpoint.id]
        restarted = endpoint.url != stored.url or (endpoint.is_active and not stored.is_active)
        self.state.endpoints[endpoint.id] = replace(
            endpoint,
            successful=stored.successful,
            failed=stored.failed,
            concurrency=stored.concurrency,
            failing_since=None if restarted else stored.failing_since,
        )

    async def remove_endpoint(self, endpoint_id: str, now: datetime) -> None:
        stored = self.state.endpoints[endpoint_id]
        self.state.ensure_still(stored.business_id)
        self.state.endpoints[endpoint_id] = replace(stored, is_active=False, updated_at=now)
        self.state.removed[endpoint_id] = now

    async def last_event_id(self, business_id: str, environment: Environment) -> str | None:
        return max((event.id for event in self._events(business_id, environment)), default=None)

    async def emit(self, event: Event, deliveries: Sequence[Delivery]) -> None:
        self.state.events[event.reference, event.sequence] = event
        self.state.deliveries.update({delivery.id: delivery for delivery in deliveries})

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        own = [delivery for delivery in self.state.deliveries.values() if delivery.endpoint_id == endpoint_id]
        older = sorted(
            (d for d in own if after is None or d.id < after), key=lambda delivery: delivery.id, reverse=True
        )
        return older[offset : offset + limit], len(own)

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        delivery = self.state.deliveries.get(delivery_id)
        return delivery if delivery is not None and delivery.endpoint_id == endpoint_id else None

    async def own_delivery(self, reference: str, delivery_id: str) -> Delivery | None:
        delivery = self.state.deliveries.get(delivery_id)
        is_own = delivery is not None and (delivery.reference, delivery.endpoint_id) == (reference, None)
        return delivery if is_own else None

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        if delivery.lease_until is not None and delivery.lease_until > now:
            return
        endpoint = self.state.endpoints.get(delivery.endpoint_id or "")
        if endpoint is not None:
            self.state.endpoints[endpoint.id] = replace(
                endpoint,
                successful=endpoint.successful - (delivery.status is DeliveryStatus.DELIVERED),
                failed=endpoint.failed - (delivery.status is DeliveryStatus.FAILED),
            )
        self.state.deliveries[delivery.id] = replace(
            delivery, status=DeliveryStatus.PENDING, next_attempt_at=now, lease_until=None, token=None
        )

    async def events(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        own = sorted(self._events(business_id, environment), key=lambda event: event.id)
        return [event for event in own if after is None or event.id > after][:limit]

    def _events(self, business_id: str, environment: Environment) -> list[Event]:
        return [e for e in self.state.events.values() if e.business_id == business_id and e.environment is environment]

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]:
        events = [event for event in self.state.events.values() if event.reference == reference]
        deliveries = [delivery for delivery in self.state.deliveries.values() if delivery.reference == reference]
        return sorted(events, key=lambda event: event.sequence), sorted(deliveries, key=lambda delivery: delivery.id)

    async def events_of(self, references: Sequence[str]) -> list[Event]:
        return [event for event in self.state.events.values() if event.reference in references]

    async def save_bodies(self, events: Sequence[Event]) -> None:
        self.state.events.update({(event.reference, event.sequence): event for event in events})
