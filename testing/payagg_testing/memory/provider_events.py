"""Inbound events and provider health in memory."""

from dataclasses import replace
from datetime import datetime

from payagg.application.ports.providers import ProviderEvent, RefusedEvent
from payagg.domain.health import Health
from payagg.domain.values import Environment
from payagg_testing.memory.state import MemoryRepository


class MemoryProviderEvents(MemoryRepository):
    async def add(self, event: ProviderEvent) -> bool:
        once = (event.provider, event.environment, event.digest)
        if any((e.provider, e.environment, e.digest) == once for e in self.state.inbox.values()):
            return False
        self.state.inbox[event.id] = event
        return True

    async def lock_due(self, now: datetime, limit: int) -> list[ProviderEvent]:
        due = [
            (e.next_attempt_at, e.id)
            for e in self.state.inbox.values()
            if e.next_attempt_at and e.next_attempt_at <= now
        ]
        return [self.state.inbox[event_id] for _, event_id in sorted(due)[:limit]]

    async def count_due(self, now: datetime, most: int) -> int:
        return len(await self.lock_due(now, most))

    async def save(self, event: ProviderEvent) -> None:
        self.state.inbox[event.id] = event

    async def list_refused(self) -> list[RefusedEvent]:
        return sorted(self.state.refused.values(), key=lambda event: event.received_at, reverse=True)

    async def purge_refused(self, before: datetime) -> int:
        old = [key for key, event in self.state.refused.items() if event.received_at <= before]
        for key in old:
            del self.state.refused[key]
        return len(old)

    async def empty(self, before: datetime, limit: int) -> int:
        old = [e for e in self.state.inbox.values() if e.handled_at is not None and e.handled_at < before and e.body]
        for event in sorted(old, key=lambda e: (e.handled_at, e.id))[:limit]:
            self.state.inbox[event.id] = replace(event, body=b"")
        return min(len(old), limit)

    async def remove(self, before: datetime, after: str, limit: int) -> tuple[int, str | None]:
        walked = sorted(e.id for e in self.state.inbox.values() if e.received_at < before and e.id > after)[:limit]
        handled = [event_id for event_id in walked if self.state.inbox[event_id].handled_at is not None]
        for event_id in handled:
            del self.state.inbox[event_id]
        return len(handled), walked[-1] if walked else None


class MemoryHealth(MemoryRepository):
    async def all(self) -> list[Health]:
        return list(self.state.health.values())

    async def lock(self, gateway: str, environment: Environment) -> Health:
        return self.state.health.setdefault((gateway, environment), Health(gateway, environment))

    async def save(self, health: Health) -> None:
        self.state.health[health.gateway, health.environment] = health
