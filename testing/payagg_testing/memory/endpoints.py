"""Merchants' webhook endpoints in memory."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from payagg.domain.values import Environment
from payagg.domain.webhook import Subscriber, WebhookEndpoint
from payagg_testing.memory.state import MemoryRepository


class MemoryEndpoints(MemoryRepository):
    async def of_business(self, business_id: str) -> list[WebhookEndpoint]:
        every = [endpoint for endpoint in self.state.endpoints.values() if endpoint.id not in self.state.removed]
        own = [endpoint for endpoint in every if endpoint.business_id == business_id]
        return sorted(own, key=lambda endpoint: (endpoint.created_at, endpoint.id))

    async def subscribers(self, business_id: str, environment: Environment) -> list[Subscriber]:
        own = await self.of_business(business_id)
        active = [one for one in own if one.is_active and one.environment is environment]
        return [Subscriber(one.id, one.environment, one.events) for one in active]

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[Subscriber]]:
        found = {owner: await self.subscribers(*owner) for owner in owners}
        return {owner: endpoints for owner, endpoints in found.items() if endpoints}

    async def get(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        return next((one for one in await self.of_business(business_id) if one.id == endpoint_id), None)

    lock = get

    async def add(self, endpoint: WebhookEndpoint) -> None:
        self.state.endpoints[endpoint.id] = endpoint

    async def save(self, endpoint: WebhookEndpoint) -> None:
        stored = self.state.endpoints[endpoint.id]
        restarted = endpoint.url != stored.url or (endpoint.is_active and not stored.is_active)
        self.state.endpoints[endpoint.id] = replace(
            endpoint,
            successful=stored.successful,
            failed=stored.failed,
            concurrency=stored.concurrency,
            failing_since=None if restarted else stored.failing_since,
        )

    async def remove(self, endpoint_id: str, now: datetime) -> None:
        stored = self.state.endpoints[endpoint_id]
        self.state.endpoints[endpoint_id] = replace(stored, is_active=False, updated_at=now)
        self.state.removed[endpoint_id] = now
