"""Events and their deliveries."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from payagg.domain.delivery import Delivery, DeliveryStatus, Event, attempts_before_redelivery
from payagg.domain.values import Environment
from payagg_testing.memory.state import MemoryRepository


class MemoryWebhookEvents(MemoryRepository):
    async def last_id(self, business_id: str, environment: Environment) -> str | None:
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
            delivery,
            status=DeliveryStatus.PENDING,
            attempts=attempts_before_redelivery(delivery, now),
            next_attempt_at=now,
            lease_until=None,
            token=None,
        )

    async def page(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        own = sorted(self._events(business_id, environment), key=lambda event: event.id)
        return [event for event in own if after is None or event.id > after][:limit]

    def _events(self, business_id: str, environment: Environment) -> list[Event]:
        return [e for e in self.state.events.values() if e.business_id == business_id and e.environment is environment]

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]:
        events = [event for event in self.state.events.values() if event.reference == reference]
        deliveries = [delivery for delivery in self.state.deliveries.values() if delivery.reference == reference]
        return sorted(events, key=lambda event: event.sequence), sorted(deliveries, key=lambda delivery: delivery.id)

    async def of_payments(self, references: Sequence[str]) -> list[Event]:
        return [event for event in self.state.events.values() if event.reference in references]

    async def save_bodies(self, events: Sequence[Event]) -> None:
        self.state.events.update({(event.reference, event.sequence): event for event in events})
