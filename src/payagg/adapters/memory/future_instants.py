"""Instants that a clock which was ahead left behind, in memory."""

from dataclasses import replace
from datetime import datetime

from payagg.adapters.memory.state import MemoryRepository
from payagg.domain.values import CLOCK_SLACK
from payagg.domain.webhook import is_dated_ahead


class MemoryFutureInstants(MemoryRepository):
    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        asks = [attempt for attempt in self.state.attempts.values() if attempt.is_dated_ahead(now)]
        for attempt in asks:
            self.state.attempts[attempt.reference, attempt.number] = attempt.pulled_back(now)
            self.state.holds.pop((attempt.reference, attempt.number), None)
        deliveries = [one for one in self.state.deliveries.values() if is_dated_ahead(one, now)]
        for one in deliveries:
            dates = {name: getattr(one, name) for name in ("created_at", "last_attempt_at", "lease_until")}
            back = {name: min(at, now) for name, at in dates.items() if at is not None}
            self.state.deliveries[one.id] = replace(one, next_attempt_at=now, **back)
        events = [event for event in self.state.inbox.values() if event.is_dated_ahead(now)]
        for event in events:
            received_at = min(event.received_at, now)
            self.state.inbox[event.id] = replace(event, received_at=received_at, next_attempt_at=now)
        runs = [run for run in self.state.reconciliations.values() if run.claim and run.started_at > now + CLOCK_SLACK]
        for run in runs:
            self.state.reconciliations[run.id] = replace(run, claim=None)
        return len(asks) + len(deliveries) + len(events) + len(runs), None
