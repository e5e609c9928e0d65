"""Two servers over one database, racers between them, and a look at everything that one payment left behind."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from payagg_testing.builders import an_endpoint
from payagg_testing.clocks import ManualClock

from lab.races.model import A, B, RaceState
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.attempt import payment_reference
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway
from payagg.domain.payment import PAYMENT, Payment, Status, Trigger
from payagg.domain.report import was_paid
from payagg.domain.webhook import EVENT_FOR, anomaly_event_of
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.provider_world import PATIENCE, World, assembled, world_on

SPREAD_MAX = 0.1  # seconds
ENDPOINTS = ("whe_sandbox", "whe_second")
BUSINESS = "biz_1"
Call = Callable[[], Awaitable[Any]]


class TickingClock(ManualClock):
    """Moves with every reading, so that of two readings under one lock the dates tell which was first."""

    def now(self) -> datetime:
        now = super().now()
        self.move(timedelta(microseconds=1))
        return now

    def reach(self, moment: datetime) -> None:
        """Never back."""
        if self.now() < moment:
            self.set(moment)


@dataclass(frozen=True)
class Answered:
    """What a call returned or raised, and when it was under way."""

    answer: Any
    began: float
    ended: float


@dataclass
class Grid:
    """Two servers with pools of their own over one database, one clock and one provider.

    `spread` is the longest delay of a racer, in seconds.
    """

    world: World
    servers: list[Services]
    clock: TickingClock
    spread: float = 0.0

    async def gateway(self) -> Gateway:
        async with self.world.store.begin() as tx:
            gateway = await tx.gateways.get(f"gw_{A}")
        assert gateway is not None
        return gateway

    async def timed(self, chance: random.Random, *calls: Call) -> list[Answered]:
        """What each call returned or raised, in their order."""

        async def started(call: Call, delay: float) -> Answered:
            await asyncio.sleep(delay)
            began = time.monotonic()
            try:
                answer = await call()
            except Exception as error:  # noqa: BLE001 - judged by whoever raced
                answer = error
            return Answered(answer, began, time.monotonic())

        def delay() -> float:
            return chance.choice((0.0, 1.0, 1.0)) * chance.uniform(0.0, self.spread)

        async with asyncio.timeout(PATIENCE):  # a defect should fail a test, not hang it
            return await asyncio.gather(*(started(call, delay()) for call in calls))

    async def stored(self, payment: Payment) -> tuple[Any, ...]:
        """What `RaceState.stored` is about, once nothing about the payment's records is impossible."""
        history = await self._legal_history(payment)
        anomalies = frozenset(anomaly.kind for anomaly in await self.world.anomalies(payment))
        handed = [attempt.gateway for attempt in await self.world.attempts(payment) if attempt.hand_off is not None]
        chosen = await self.chosen()
        gateway = (await self.gateway()).status
        return history, anomalies, next(iter(handed), None), gateway, chosen.is_opted_out, chosen.default, chosen.order

    async def chosen(self) -> RaceState:
        """What the business chose, as the start of a race."""
        async with self.world.store.begin() as tx:
            own = (await tx.gateway_choices.of_business(BUSINESS)).settings
        a, b = own.get(f"gw_{A}"), own.get(f"gw_{B}")
        defaults = [slug for slug, one in ((A, a), (B, b)) if one is not None and one.is_default]
        assert len(defaults) <= 1
        return RaceState(
            is_opted_out=a is not None and not a.is_enabled,
            default=next(iter(defaults), None),
            order=(a.display_order if a else None, b.display_order if b else None),
        )

    async def _legal_history(self, payment: Payment) -> tuple[Status, ...]:
        """The statuses the payment went through."""
        async with self.world.store.begin() as tx:
            stored = await tx.payments.get(payment.reference)
            transitions = await tx.payments.transitions(payment.reference)
            attempts = await tx.attempts.of_payment(payment.reference)
            anomalies = await tx.anomalies.of_payment(payment.reference)
            events, deliveries = await tx.webhook_events.of_payment(payment.reference)
            unheard = await tx.inbox.lock_due(self.clock.now() + timedelta(days=1), 1)
        assert stored is not None
        status = PAYMENT.initial
        for transition in transitions:
            assert transition.from_status is status
            status = PAYMENT.next(status, transition.trigger)  # raises for a move the table does not hold
            assert transition.to_status is status is not transition.from_status
        assert stored.status is status

        told = {t.sequence: EVENT_FOR[t.to_status].value for t in transitions}
        last = max(told, default=0)
        # A fact that moved nothing has an event as well, under a number of the same row.
        paid = was_paid(stored, anomalies)
        notices = [
            (a.event_sequence or 0, n.value) for a in anomalies if (n := anomaly_event_of(a, was_paid=paid)) is not None
        ]
        told |= dict(notices)
        assert sorted(told) == list(range(1, len(transitions) + len(notices) + 1))
        assert stored.sequence == (last if stored.is_final else len(told))
        assert [(e.sequence, e.type) for e in events] == sorted(told.items())
        sent = sorted((delivery.event_id, delivery.endpoint_id or "") for delivery in deliveries)
        assert sent == sorted(product((event.id for event in events), ENDPOINTS))
        assert unheard == []  # what goes wrong with an event is not told to its sender

        begun = [about for name, about in self.world.fakes.paystack.book.calls if name == "initialize"]
        assert len([about for about in begun if payment_reference(about) == payment.reference]) <= 1
        given = [attempt for attempt in attempts if attempt.hand_off is not None]
        assert len(given) == [transition.trigger for transition in transitions].count(Trigger.PROCESS)
        if stored.settled_at is not None:
            # Whoever held the payment's lock last knew that it had ended.
            dates = [date for a in attempts for date in (a.created_at, a.handed_off_at) if date is not None]
            assert all(date < stored.settled_at for date in dates)
        return tuple(transition.to_status for transition in transitions)


def said(answer: Any, of: Callable[[Any], str] = str) -> str:
    """A refusal's code, or what `of` says of the answer; raises every other exception."""
    if isinstance(answer, Refusal):
        assert isinstance(answer.code, ErrorCode)
        return answer.code.name
    if isinstance(answer, BaseException):
        raise answer
    return of(answer)


@asynccontextmanager
async def a_grid(database_url: str, folder: Path) -> AsyncIterator[Grid]:
    async with world_on(database_url, folder) as world:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER  # the rounds deliver them
        world.fakes.paystack.book.ids = lambda: 1  # the transaction of which their events tell
        async with world.store.begin() as tx:
            await tx.endpoints.add(an_endpoint("whe_second"))
        clock = TickingClock()
        stores = [PostgresStore(database_url, pool_size=8, pgbouncer=False) for _ in range(2)]
        assembled_servers = [assembled(store, clock) for store in stores]
        world.clock, world.services = clock, assembled_servers[0]
        grid = Grid(world, assembled_servers, clock)
        for _ in range(3):  # the first ones open connections
            started = time.monotonic()
            await world.handed_over(A)
        # The other racer may then fall anywhere into a `process`, or shortly after it.
        grid.spread = min(1.5 * (time.monotonic() - started), SPREAD_MAX)
        yield grid
        for store in stores:
            await store.close()
