"""The race grid: what may happen to one payment at the same moment, pair by pair, between two servers.

Each round is one payment. Its racers start after small random delays, and whichever wins, the history left behind must
be one that could have come about without a race.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.provider_events import provider_event_routes
from payagg.application.schemas.payments import ProcessPayment
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import payment_reference
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.payment import OUTCOMES, PAYMENT, Payment, Status, Trigger
from payagg.domain.webhook import EVENT_FOR, notice_of
from payagg.entrypoints.bootstrap import Services
from payagg.testing.clocks import ManualClock
from payagg.testing.fake_providers import FakeCharge, FakePaystack, WebhookMode
from tests.support.builders import AN_ADMIN, an_endpoint
from tests.support.provider_rigs import SECRET_KEYS
from tests.support.provider_world import PATIENCE, World, assembled, world_on
from tests.support.rounds import ROUNDS

pytestmark = pytest.mark.anyio
SPREAD_MAX = 0.1  # seconds
SHORTLY = timedelta(milliseconds=1)
SLUG, GATEWAY_ID = "provider_a", "gw_provider_a"
ROUTE = provider_event_routes("provider_a", "provider_b")[0]
ENDPOINTS = ("whe_sandbox", "whe_second")
PENDING, SUCCESS, FAILED = Status.PENDING, Status.SUCCESS, Status.FAILED

Call = Callable[[], Awaitable[Any]]


class TickingClock(ManualClock):
    """Moves with every reading, so that of two readings under one lock the dates tell which was first."""

    def now(self) -> datetime:
        now = super().now()
        self.move(timedelta(microseconds=1))
        return now


@dataclass
class Grid:
    """Two servers with pools of their own over one database, one clock and one provider.

    `spread` is the longest delay of a racer, in seconds.
    """

    world: World
    servers: list[Services]
    clock: TickingClock
    spread: float = 0.0

    @property
    def fake(self) -> FakePaystack:
        return self.world.fakes.paystack

    def process(self, payment: Payment) -> list[Call]:
        """A payer's click at each server."""
        command = ProcessPayment(gateway_slug=SLUG)
        return [partial(server.checkout.process, payment.reference, command) for server in self.servers]

    def verify(self, payment: Payment) -> list[Call]:
        return [partial(server.verification.verify, payment.reference) for server in self.servers]

    def simulate(self, payment: Payment, outcome: str, chance: random.Random) -> Call:
        server = chance.choice(self.servers)
        return partial(server.payments.simulate, payment.reference, outcome, payment.business_id, by=AN_ADMIN)

    def event(self, payment: Payment) -> list[Call]:
        """The provider's word that the payer has paid, once to each server; it may overtake the answer to our call."""
        charge = FakeCharge(
            reference=payment.reference,
            amount=payment.amount,
            currency=payment.currency,
            mode="test",
            id=1,
            status="success",
            key=SECRET_KEYS["test"],
        )
        event = self.fake.event(charge)
        return [partial(server.provider_events.receive, ROUTE, event.body, event.headers) for server in self.servers]

    async def paid(self) -> Payment:
        """A PENDING payment whose payer has paid at the provider, which nobody here knows yet."""
        payment = await self.world.handed_over(SLUG)
        self.fake.pay(payment.reference)
        return payment

    async def gateway(self) -> Gateway:
        async with self.world.store.begin() as tx:
            gateway = await tx.gateways.get(GATEWAY_ID)
        assert gateway is not None
        return gateway

    async def race(self, chance: random.Random | None, *calls: Call) -> list[Any]:
        """What each call returned or raised, in their order; without `chance` all start at the same moment."""

        async def started(call: Call, delay: float) -> Any:
            await asyncio.sleep(delay)
            return await call()

        def delay() -> float:
            return chance.choice((0.0, 1.0, 1.0)) * chance.uniform(0.0, self.spread) if chance else 0.0

        async with asyncio.timeout(PATIENCE):  # a defect should fail a test, not hang it
            return await asyncio.gather(*(started(call, delay()) for call in calls), return_exceptions=True)

    async def hand_offs(self, payment: Payment) -> set[str]:
        return {a.hand_off.checkout_url for a in await self.world.attempts(payment) if a.hand_off is not None}

    async def legal_history(self, payment: Payment) -> tuple[Status, ...]:
        """The statuses the payment went through, when nothing about how it did is impossible."""
        history = await self._history(payment)
        if history and history[-1] in PAYMENT.final:
            await self._ensure_unchangeable(payment)
            assert await self._history(payment) == history
        return history

    async def _history(self, payment: Payment) -> tuple[Status, ...]:
        async with self.world.store.begin() as tx:
            stored = await tx.payments.get(payment.reference)
            transitions = await tx.payments.transitions(payment.reference)
            attempts = await tx.payments.attempts(payment.reference)
            anomalies = await tx.anomalies.of_payment(payment.reference)
            events, deliveries = await tx.webhooks.of_payment(payment.reference)
            unheard = await tx.inbox.lock_due(self.clock.now() + timedelta(days=1), 1)
        assert stored is not None
        status = PAYMENT.initial
        for number, transition in enumerate(transitions, start=1):
            assert (transition.sequence, transition.from_status) == (number, status)
            status = PAYMENT.next(status, transition.trigger)  # raises for a move the table does not hold
            assert transition.to_status is status is not transition.from_status
        assert (stored.status, stored.sequence) == (status, len(transitions))

        told = [EVENT_FOR[t.to_status].value for t in transitions]
        # News that moved nothing has an event as well, numbered after the changes of status.
        told += [notice.value for anomaly in reversed(anomalies) if (notice := notice_of(anomaly.kind, stored))]
        assert [(e.sequence, e.type) for e in events] == list(enumerate(told, start=1))
        sent = sorted((delivery.event_id, delivery.endpoint_id or "") for delivery in deliveries)
        assert sent == sorted(product((event.id for event in events), ENDPOINTS))
        assert unheard == []  # what goes wrong with an event is not told to its sender

        begun = [about for name, about in self.fake.book.calls if name == "initialize"]
        assert len([about for about in begun if payment_reference(about) == payment.reference]) <= 1
        given = [attempt for attempt in attempts if attempt.hand_off is not None]
        assert len(given) == [transition.trigger for transition in transitions].count(Trigger.PROCESS)
        if stored.settled_at is not None:
            # Whoever held the payment's lock last knew that it had ended.
            dates = [date for a in attempts for date in (a.created_at, a.handed_off_at) if date is not None]
            assert all(date < stored.settled_at for date in dates)
        return tuple(transition.to_status for transition in transitions)

    async def _ensure_unchangeable(self, payment: Payment) -> None:
        """Tries on a final payment what could end it otherwise."""
        simulations = [self.simulate(payment, outcome, random.Random(0)) for outcome in OUTCOMES]
        sweeps = [server.settlement.expire_due for server in self.servers]
        *answers, first, second = await self.race(None, *simulations, *sweeps, *self.process(payment))
        assert values(answers[: len(simulations)], ErrorCode.PAYMENT_ALREADY_FINAL) == []
        assert values(answers[len(simulations) :]) == [0, 0]
        assert values([first, second], ErrorCode.PAYMENT_ALREADY_PROCESSED, ErrorCode.PAYMENT_EXPIRED) == []


@pytest.fixture
async def grid(database_url: str, tmp_path: Path) -> AsyncIterator[Grid]:
    async with world_on(database_url, tmp_path) as world:
        world.fakes.paystack.book.webhooks = WebhookMode.NEVER  # the rounds deliver them
        async with world.store.begin() as tx:
            await tx.webhooks.add_endpoint(an_endpoint("whe_second"))
        clock = TickingClock()
        stores = [PostgresStore(database_url, pool_size=8, pgbouncer=False) for _ in range(2)]
        servers = [assembled(store, clock, tmp_path) for store in stores]
        world.clock, world.services = clock, servers[0]
        grid = Grid(world, servers, clock)
        for _ in range(3):  # the first ones open connections
            started = time.monotonic()
            await world.handed_over(SLUG)
        # The other racer may then fall anywhere into a `process`, or shortly after it.
        grid.spread = min(1.5 * (time.monotonic() - started), SPREAD_MAX)
        yield grid
        for store in stores:
            await store.close()


def values(answers: list[Any], *refusals: ErrorCode) -> list[Any]:
    """The answers that are no refusal; raises every exception but these refusals."""
    given = []
    for answer in answers:
        if not isinstance(answer, BaseException):
            given.append(answer)
        elif not (isinstance(answer, Refusal) and answer.code in refusals):
            raise answer
    return given


async def process_and_the_sweep_at_the_instant_of_expiry(grid: Grid, chance: random.Random) -> None:
    payment = await grid.world.payment()
    grid.clock.set(payment.expires_at - SHORTLY)

    async def expires() -> None:
        grid.clock.set(payment.expires_at)
        await asyncio.gather(*(server.settlement.expire_due() for server in grid.servers))

    *answers, swept = await grid.race(chance, *grid.process(payment), expires)
    values([swept])
    given = values(answers, ErrorCode.PAYMENT_EXPIRED)
    await grid.servers[0].settlement.expire_due()  # the first sweeps pass by what is locked at their moment
    assert {answer.checkout_url for answer in given} == await grid.hand_offs(payment)
    assert await grid.legal_history(payment) == ((PENDING,) if given else (FAILED,))


async def process_and_simulate(grid: Grid, chance: random.Random) -> None:
    payment = await grid.world.payment()
    outcome = chance.choice(list(OUTCOMES))
    *answers, simulated = await grid.race(chance, *grid.process(payment), grid.simulate(payment, outcome, chance))
    given = values(answers, ErrorCode.PAYMENT_ALREADY_PROCESSED)
    assert [detail.status for detail in values([simulated])] == [Status(outcome)]
    assert {answer.checkout_url for answer in given} == await grid.hand_offs(payment)
    assert await grid.legal_history(payment) == ((PENDING, Status(outcome)) if given else (Status(outcome),))


async def process_and_event(grid: Grid, chance: random.Random) -> None:
    payment = await grid.world.payment()
    *answers, first, second = await grid.race(chance, *grid.process(payment), *grid.event(payment))
    assert values([first, second]) == [None, None]
    given = values(answers, ErrorCode.PAYMENT_ALREADY_PROCESSED)
    assert {answer.checkout_url for answer in given} == await grid.hand_offs(payment)
    history = await grid.legal_history(payment)
    assert history in ([(PENDING,), (PENDING, SUCCESS)] if given else [(SUCCESS,)])
    # Word of a charge that nobody had begun moves nothing, and is kept.
    early = [AnomalyKind.WRONG_PROVIDER] if history == (PENDING,) else []
    assert [anomaly.kind for anomaly in await grid.world.anomalies(payment)] == early


async def event_and_simulate(grid: Grid, chance: random.Random) -> None:
    payment = await grid.paid()
    outcome = chance.choice(list(OUTCOMES))
    *heard, simulated = await grid.race(chance, *grid.event(payment), grid.simulate(payment, outcome, chance))
    assert values(heard) == [None, None]
    ended = Status(outcome) if values([simulated], ErrorCode.PAYMENT_ALREADY_FINAL) else SUCCESS
    assert await grid.legal_history(payment) == (PENDING, ended)
    # Money came for a payment that a simulation ended otherwise: that must not be lost.
    late = [] if ended is SUCCESS else [AnomalyKind.LATE_SUCCESS]
    assert [anomaly.kind for anomaly in await grid.world.anomalies(payment)] == late


async def process_and_a_gateway_switched_off(grid: Grid, chance: random.Random) -> None:
    payment = await grid.world.payment()
    switch_off = partial(chance.choice(grid.servers).gateways.disable, GATEWAY_ID, by=AN_ADMIN)
    *answers, off = await grid.race(chance, *grid.process(payment), switch_off)
    values([off])
    assert (await grid.gateway()).status is GatewayStatus.DRAINING
    given = values(answers, ErrorCode.GATEWAY_NOT_AVAILABLE)
    assert len(given) in (0, len(answers))  # whoever comes after the one who was let in gets the same hand-off
    assert {answer.checkout_url for answer in given} == await grid.hand_offs(payment)
    assert await grid.legal_history(payment) == ((PENDING,) if given else ())
    await grid.servers[0].gateways.enable(GATEWAY_ID, by=AN_ADMIN)


async def process_and_the_end_of_a_drain(grid: Grid, chance: random.Random) -> None:
    handed_over, fresh, drain_ends = await draining(grid)
    repeats_and_firsts = (*grid.process(handed_over), *grid.process(fresh))
    *answers, ended = await grid.race(chance, *repeats_and_firsts, drain_ends)
    assert {answer.checkout_url for answer in values(answers[:2])} == await grid.hand_offs(handed_over)
    assert values(answers[2:], ErrorCode.GATEWAY_NOT_AVAILABLE) == []
    assert values([ended]) == [1]
    assert (await grid.gateway()).status is GatewayStatus.DISABLED
    assert await grid.legal_history(handed_over) == (PENDING,)
    assert await grid.legal_history(fresh) == ()
    await grid.servers[0].gateways.enable(GATEWAY_ID, by=AN_ADMIN)


async def process_and_a_gateway_switched_on_at_the_end_of_its_drain(grid: Grid, chance: random.Random) -> None:
    handed_over, fresh, drain_ends = await draining(grid)
    switch_on = partial(chance.choice(grid.servers).gateways.enable, GATEWAY_ID, by=AN_ADMIN)
    repeats_and_firsts = (*grid.process(handed_over), *grid.process(fresh))
    *answers, ended, on = await grid.race(chance, *repeats_and_firsts, drain_ends, switch_on)
    assert {answer.checkout_url for answer in values(answers[:2])} == await grid.hand_offs(handed_over)
    given = values(answers[2:], ErrorCode.GATEWAY_NOT_AVAILABLE)
    assert {answer.checkout_url for answer in given} == await grid.hand_offs(fresh)
    assert values([ended]) in ([0], [1])
    values([on])
    assert (await grid.gateway()).status is GatewayStatus.ACTIVE
    assert await grid.legal_history(handed_over) == (PENDING,)
    assert await grid.legal_history(fresh) == ((PENDING,) if given else ())


async def draining(grid: Grid) -> tuple[Payment, Payment, Call]:
    """Shortly before the end of a drain: a payment handed to its gateway, a fresh one, and how the drain ends."""
    handed_over, fresh = await grid.world.handed_over(SLUG), await grid.world.payment()
    await grid.servers[0].gateways.disable(GATEWAY_ID, by=AN_ADMIN)
    end = (await grid.gateway()).drain_ends_at
    assert end is not None
    grid.clock.set(end - SHORTLY)

    async def drain_ends() -> int:
        grid.clock.set(end)
        return sum(await asyncio.gather(*(server.gateways.end_drains() for server in grid.servers)))

    return handed_over, fresh, drain_ends


async def verify_and_event_and_simulate_that_all_say_success(grid: Grid, chance: random.Random) -> None:
    payment = await grid.paid()
    racers = (*grid.verify(payment), *grid.event(payment), grid.simulate(payment, "SUCCESS", chance))
    *answers, simulated = await grid.race(chance, *racers)
    assert {answer.status for answer in values(answers[:2])} <= {PENDING, SUCCESS}
    assert values(answers[2:]) == [None, None]
    values([simulated], ErrorCode.PAYMENT_ALREADY_FINAL)
    assert await grid.legal_history(payment) == (PENDING, SUCCESS)
    assert await grid.world.anomalies(payment) == []


PAIRS = (
    process_and_the_sweep_at_the_instant_of_expiry,
    process_and_simulate,
    process_and_event,
    event_and_simulate,
    process_and_a_gateway_switched_off,
    process_and_the_end_of_a_drain,
    process_and_a_gateway_switched_on_at_the_end_of_its_drain,
    verify_and_event_and_simulate_that_all_say_success,
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.__name__)
async def test_only_legal_histories_come_of(grid: Grid, pair: Callable[[Grid, random.Random], Awaitable[None]]) -> None:
    for number in range(ROUNDS):
        seed = f"{pair.__name__} {number}"
        print(seed)  # shown with a failure
        await pair(grid, random.Random(seed))
