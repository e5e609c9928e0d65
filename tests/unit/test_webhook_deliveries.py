"""The sending loop over the in-memory outbox: the whole schedule by a clock that tests move."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from payagg.adapters.memory import MemoryStore
from payagg.adapters.security import AesVault
from payagg.application import counters, dispatcher
from payagg.application.ports import Conflict, TryResult, Unavailable
from payagg.application.schemas.webhooks import ChangeWebhook, CreateWebhook
from payagg.application.store import ClaimedDelivery, DeliveryResult
from payagg.domain.payment import Trigger
from payagg.domain.values import Environment
from payagg.domain.webhook import ALONE_FROM, CONCURRENCY_START, RETENTION, SCHEDULE, Delivery, DeliveryStatus
from payagg.testing.clocks import ManualClock, SeededEntropy
from tests.support.assembly import services_over
from tests.support.builders import AN_ADMIN, a_business, a_payment
from tests.support.receivers import until

pytestmark = pytest.mark.anyio


@dataclass
class Postman:
    """A sender that remembers and answers as told; every try takes no time."""

    answer: Callable[[int], TryResult] = lambda _: TryResult(200, None, 5)
    sent: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> TryResult:
        self.sent.append((url, dict(headers), body))
        return self.answer(len(self.sent))


def failing(status: int | None = 500, **more: timedelta) -> Callable[[int], TryResult]:
    return lambda _: TryResult(status, "it failed", 5, **more)


@dataclass
class MemoryOutbox:
    """One business with one endpoint, and payments that settle on demand."""

    clock: ManualClock = field(default_factory=ManualClock)
    entropy: SeededEntropy = field(default_factory=SeededEntropy)
    store: MemoryStore = field(default_factory=MemoryStore)
    postman: Postman = field(default_factory=Postman)

    def __post_init__(self) -> None:
        services = services_over(self.store, clock=self.clock, entropy=self.entropy, sender=self.postman)
        self.webhooks, self.dispatcher, self.settlement = services.webhooks, services.dispatcher, services.settlement
        self.endpoint_id = ""

    async def open(self, environment: Environment = Environment.LIVE) -> "MemoryOutbox":
        async with self.store.begin() as tx:
            await tx.businesses.add(a_business())
        made = await self.webhooks.create(
            "biz_1",
            CreateWebhook(url="https://shop.example/hooks", environment=environment),
            by=AN_ADMIN,
        )
        self.endpoint_id = made.id
        return self

    async def settle(self, environment: Environment = Environment.LIVE, **fields: Any) -> str:
        """The reference of a payment that succeeded now."""
        reference = self.entropy.reference(self.clock.now())
        payment = a_payment(reference=reference, environment=environment, now=self.clock.now(), **fields)
        await self.store.add_payment(payment)
        async with self.store.begin() as tx:
            await self.settlement.move(tx, payment, Trigger.SUCCEED, actor="test")
        return reference

    def deliveries(self) -> list[Delivery]:
        return sorted(self.store.state.deliveries.values(), key=lambda delivery: delivery.id)

    @property
    def only(self) -> Delivery:
        [delivery] = self.deliveries()
        return delivery

    async def run_to_the_end(self) -> list[timedelta]:
        """The times of the tries since the first, the clock set to each when it falls due."""
        start = self.clock.now()
        tries = []
        while self.only.status is DeliveryStatus.PENDING:
            due = self.only.next_attempt_at
            assert due is not None
            if due > self.clock.now():
                self.clock.set(due - timedelta(milliseconds=1))
                assert await self.dispatcher.run_once() == 0
                self.clock.set(due)
            tries.append(self.clock.now() - start)
            assert await self.dispatcher.run_once() == 1
        return tries


@pytest.mark.parametrize(("environment", "count"), [(Environment.LIVE, 10), (Environment.SANDBOX, 4)])
async def test_a_dead_endpoint_is_tried_by_the_whole_schedule_under_one_id(
    environment: Environment, count: int
) -> None:
    world = await MemoryOutbox(postman=Postman(failing())).open(environment)
    await world.settle(environment)
    tries = await world.run_to_the_end()
    assert len(tries) == count
    planned = [sum(SCHEDULE[environment][: number + 1], timedelta(0)) for number in range(count)]
    for real, plan in zip(tries, planned, strict=True):
        assert plan * 0.8 <= real <= plan * 1.2
    assert world.only.status is DeliveryStatus.FAILED
    assert world.only.attempts == count
    assert len({headers["webhook-id"] for _, headers, _ in world.postman.sent}) == 1
    assert len({body for _, _, body in world.postman.sent}) == 1
    if environment is Environment.LIVE:
        assert len({headers["webhook-timestamp"] for _, headers, _ in world.postman.sent}) == count
        assert timedelta(hours=60) < tries[-1] < timedelta(hours=91)


async def test_a_receiver_that_comes_back_gets_the_event_at_its_next_try() -> None:
    world = await MemoryOutbox(postman=Postman(lambda number: TryResult(200 if number > 3 else 503, None, 5))).open()
    await world.settle()
    assert len(await world.run_to_the_end()) == 4
    assert (world.only.status, world.only.last_status_code) == (DeliveryStatus.DELIVERED, 200)
    [endpoint] = await world.webhooks.listed("biz_1")
    assert (endpoint.delivery_summary.successful, endpoint.delivery_summary.failed) == (1, 0)


@pytest.mark.parametrize(("asked", "expected"), [(1, 5), (7, 7), (3600, 10)])
async def test_retry_after_is_heeded_between_once_and_twice_the_planned_delay(asked: int, expected: int) -> None:
    world = await MemoryOutbox(postman=Postman(failing(429, retry_after=timedelta(seconds=asked)))).open()
    await world.settle()
    await world.dispatcher.run_once()
    assert world.only.next_attempt_at == world.clock.now() + timedelta(seconds=expected)


async def test_gone_ends_the_delivery_and_switches_the_endpoint_off_until_it_is_activated() -> None:
    world = await MemoryOutbox(postman=Postman(failing(410))).open()
    await world.settle()
    await world.dispatcher.run_once()
    gone = world.only
    assert gone.status is DeliveryStatus.FAILED
    assert not (await world.webhooks.listed("biz_1"))[0].is_active
    await world.settle()
    assert len(world.deliveries()) == 1

    world.postman.answer = lambda _: TryResult(200, None, 5)
    await world.webhooks.change("biz_1", world.endpoint_id, ChangeWebhook(is_active=True), by=AN_ADMIN)
    await world.settle()
    await world.webhooks.redeliver("biz_1", world.endpoint_id, gone.id, by=AN_ADMIN)
    await world.dispatcher.run_once()
    assert [delivery.status for delivery in world.deliveries()] == [DeliveryStatus.DELIVERED] * 2
    [endpoint] = await world.webhooks.listed("biz_1")
    assert (endpoint.is_active, endpoint.delivery_summary.failed) == (True, 0)


async def test_five_days_of_nothing_but_failures_switch_an_endpoint_off() -> None:
    world = await MemoryOutbox(postman=Postman(failing())).open()
    for _ in range(6):
        await world.settle()
        await world.dispatcher.run_once()
        assert (await world.webhooks.listed("biz_1"))[0].is_active
        world.clock.move(timedelta(hours=23))
    world.clock.move(timedelta(hours=5))
    await world.dispatcher.run_once()
    assert not (await world.webhooks.listed("biz_1"))[0].is_active


async def test_a_redelivery_of_a_failed_delivery_is_one_try() -> None:
    world = await MemoryOutbox(postman=Postman(failing())).open(Environment.SANDBOX)
    await world.settle(Environment.SANDBOX)
    await world.run_to_the_end()
    await world.webhooks.redeliver("biz_1", world.endpoint_id, world.only.id, by=AN_ADMIN)
    assert world.only.status is DeliveryStatus.PENDING
    await world.dispatcher.run_once()
    assert (world.only.status, world.only.attempts) == (DeliveryStatus.FAILED, 5)


async def test_the_address_of_one_payment_hears_the_same_event_signed_by_the_endpoints_secret() -> None:
    world = await MemoryOutbox().open()
    await world.settle(webhook_url="https://own.example/payment")
    await world.dispatcher.run_once()
    sent = {url: (headers, body) for url, headers, body in world.postman.sent}
    assert set(sent) == {"https://shop.example/hooks", "https://own.example/payment"}
    assert sent["https://shop.example/hooks"] == sent["https://own.example/payment"]


async def test_the_address_of_one_payment_is_silent_where_no_endpoint_can_sign() -> None:
    world = await MemoryOutbox().open(Environment.SANDBOX)
    await world.settle(Environment.LIVE, webhook_url="https://own.example/payment")
    assert world.deliveries() == []


async def lose(world: MemoryOutbox) -> None:
    """A worker claims what is due and dies; its lease runs out."""
    lease = timedelta(seconds=45)
    if await world.store.queue.claim(world.clock.now(), 10, 5, 10, lease) == []:
        assert await world.store.queue.claim_suspect(world.clock.now(), lease) is not None
    world.clock.move(lease)


@pytest.mark.parametrize("environment", Environment)
async def test_what_kills_every_worker_is_slowed_down_and_given_up_after_the_schedules_last_instant(
    environment: Environment,
) -> None:
    world = await MemoryOutbox().open(environment)
    begun = world.clock.now()
    last = begun + sum(SCHEDULE[environment], timedelta(0))
    await world.settle(environment)
    deaths = 0
    while world.only.status is DeliveryStatus.PENDING:
        due = world.only.next_attempt_at
        assert due is not None
        world.clock.set(max(due, world.clock.now()))
        died_at = world.clock.now()
        await lose(world)
        deaths += 1
        if world.only.token is not None and deaths >= ALONE_FROM:
            await world.dispatcher.run_once()
    assert world.postman.sent == []
    assert last <= died_at <= last + timedelta(minutes=1)
    # As often as tries fail, and a few times more.
    assert deaths <= len(SCHEDULE[environment]) + ALONE_FROM
    assert (world.only.last_error, world.only.attempts) == ("given up: earlier tries were never recorded", 1)
    # It may be what the endpoint answers that kills them, so it gets one try at a time from now on.
    assert world.store.state.endpoints[world.endpoint_id].failing_since is not None


async def test_a_delivery_is_sent_by_the_first_worker_that_lives_however_many_died_before() -> None:
    world = await MemoryOutbox().open(Environment.SANDBOX)
    await world.settle(Environment.SANDBOX)
    for _ in range(10):
        await lose(world)
    assert world.clock.now() < world.only.created_at + sum(SCHEDULE[Environment.SANDBOX], timedelta(0))
    assert await world.dispatcher.run_once() == 1
    assert (world.only.status, world.only.last_error) == (
        DeliveryStatus.PENDING,
        "the worker died before it recorded its try",
    )
    assert world.store.state.endpoints[world.endpoint_id].failing_since is None
    assert world.only.next_attempt_at is not None
    world.clock.set(world.only.next_attempt_at)
    assert await world.dispatcher.run_once() == 1
    assert (world.only.status, world.only.attempts, world.only.lost_tries) == (DeliveryStatus.DELIVERED, 1, 0)


async def test_a_lost_try_uses_up_no_part_of_the_schedule() -> None:
    world = await MemoryOutbox(postman=Postman(failing())).open(Environment.SANDBOX)
    await world.settle(Environment.SANDBOX)
    await lose(world)
    assert len(await world.run_to_the_end()) == len(SCHEDULE[Environment.SANDBOX])


async def a_suspect(world: MemoryOutbox) -> str:
    """The reference of a payment whose delivery is due, and sent alone, as workers died with it."""
    reference = await world.settle()
    for _ in range(ALONE_FROM):
        await lose(world)
    await world.dispatcher.run_once()
    assert world.only.next_attempt_at is not None
    world.clock.set(world.only.next_attempt_at)
    return reference


async def test_a_suspect_is_sent_while_nothing_else_is_under_way() -> None:
    world = await MemoryOutbox().open()
    first = await a_suspect(world)
    under_way: list[str] = []
    beside: dict[str, list[str]] = {}
    gate, begun = asyncio.Event(), asyncio.Event()

    class Watching:
        async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> TryResult:
            reference = msgspec.json.decode(body)["data"]["reference"]
            beside[reference] = list(under_way)
            under_way.append(reference)
            begun.set()
            if reference != first:
                await gate.wait()
            under_way.remove(reference)
            return TryResult(200, None, 5)

    world.dispatcher.sender = Watching()
    world.dispatcher._suspects_at = time.monotonic() + 0.05  # once the others are under way
    others = {await world.settle() for _ in range(3)}
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await begun.wait()
    suspect = next(one for one in world.deliveries() if one.reference == first)
    await until(lambda: world.store.state.deliveries[suspect.id].token is not None)
    others.add(await world.settle())  # due while it waits for its turn
    assert first not in beside
    gate.set()
    await until(lambda: all(one.status is DeliveryStatus.DELIVERED for one in world.deliveries()))
    stop.set()
    await running
    assert beside[first] == []
    assert all(first not in beside[other] for other in others)


async def claims_for(monkeypatch: pytest.MonkeyPatch, due: int, room: int = 400) -> int:
    """How many claims it took to send `due` events to one endpoint, when nothing is due behind them. The poll never
    comes."""
    monkeypatch.setattr(dispatcher, "POLL_SECONDS", 60.0)
    monkeypatch.setattr(dispatcher, "CONCURRENT", room)
    world = await MemoryOutbox().open()
    for _ in range(due):
        await world.settle()
    queue, claims = world.store.queue, 0

    class Counted:
        def __getattr__(self, name: str) -> object:
            return getattr(queue, name)

        async def claim(self, *args: object) -> list[ClaimedDelivery]:
            nonlocal claims
            claims += 1
            return await queue.claim(*args)  # type: ignore[arg-type]

    world.store.queue = Counted()  # type: ignore[assignment]
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: all(one.status is DeliveryStatus.DELIVERED for one in world.deliveries()))
    await asyncio.sleep(0.05)
    stop.set()
    await running
    return claims


async def test_what_waits_behind_an_endpoints_tries_does_not_wait_for_the_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await claims_for(monkeypatch, due=3 * CONCURRENCY_START) >= 3


async def test_what_waits_for_room_does_not_wait_for_the_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await claims_for(monkeypatch, due=6, room=2) >= 3


async def test_no_claim_is_made_before_the_poll_when_nothing_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await claims_for(monkeypatch, due=CONCURRENCY_START - 1) == 1


@dataclass
class HeldPostman(Postman):
    """Every try lasts until the gate opens."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, *args: Any, **more: Any) -> TryResult:
        await self.gate.wait()
        return await super().send(*args, **more)


@pytest.mark.parametrize(("poll_seconds", "looks"), [(0.001, 6), (60.0, 2)])
async def test_a_worker_whose_tries_take_all_its_room_waits_for_one_to_end(
    poll_seconds: float, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "CONCURRENT", 1)
    postman = HeldPostman()
    world = await MemoryOutbox(postman=postman).open()
    world.dispatcher.poll_seconds = poll_seconds
    for _ in range(2):
        await world.settle()
    counters.counts.clear()
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: counters.counts["worker_sweeps", "deliveries"] >= looks)
    postman.gate.set()
    await until(lambda: len(world.postman.sent) == 2, seconds=20)
    stop.set()
    await running


async def test_a_stopping_worker_finishes_what_is_under_way() -> None:
    world = await MemoryOutbox().open()
    gate = asyncio.Event()
    original = world.postman.send

    class Slow:
        async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> TryResult:
            sent = await original(url, headers, body)
            await gate.wait()
            return sent

    world.dispatcher.sender = Slow()
    await world.settle()
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: len(world.postman.sent) == 1)
    stop.set()
    await asyncio.sleep(0)
    gate.set()
    await running
    assert world.only.status is DeliveryStatus.DELIVERED


async def test_a_try_that_a_stopping_worker_cuts_short_is_repeated_at_once_and_held_against_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "GRACE_SECONDS", 0.01)
    world = await MemoryOutbox().open()
    begun, ended = asyncio.Event(), asyncio.Event()

    class Hanging:
        async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> TryResult:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError("unreachable")

    release = world.store.queue.release

    async def told(claimed: list[ClaimedDelivery]) -> None:
        await asyncio.sleep(0)  # whoever claims it now must be the only one to send it
        assert ended.is_set()
        await release(claimed)

    monkeypatch.setattr(world.store.queue, "release", told)
    world.dispatcher.sender = Hanging()
    await world.settle()
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await begun.wait()
    stop.set()
    await running
    assert (world.only.status, world.only.next_attempt_at) == (DeliveryStatus.PENDING, world.clock.now())
    assert (world.only.attempts, world.only.lease_until) == (0, None)
    assert world.store.state.endpoints[world.endpoint_id].failing_since is None


async def test_a_secret_that_we_cannot_open_is_tried_again_and_held_against_nobody() -> None:
    world = await MemoryOutbox().open()
    await world.settle()
    vault, world.dispatcher.vault = world.dispatcher.vault, AesVault((("another", b"a" * 32),))
    await world.dispatcher.run_once()
    assert (world.only.status, world.only.last_error) == (
        DeliveryStatus.PENDING,
        "the signing secret cannot be opened",
    )
    assert world.store.state.endpoints[world.endpoint_id].failing_since is None
    assert world.postman.sent == []
    world.dispatcher.vault = vault
    assert world.only.next_attempt_at is not None
    world.clock.set(world.only.next_attempt_at)
    await world.dispatcher.run_once()
    assert world.only.status is DeliveryStatus.DELIVERED


def fail_once(world: MemoryOutbox, error: Exception, after: timedelta = timedelta(0)) -> None:
    """The first record of results takes the time `after` and ends with `error`."""
    queue = world.store.queue

    class FailingOnce:
        has_failed = False

        def __getattr__(self, name: str) -> object:
            return getattr(queue, name)

        async def finish(self, results: list[DeliveryResult]) -> None:
            if not self.has_failed:
                self.has_failed = True
                world.clock.move(after)
                raise error
            await queue.finish(results)

    world.store.queue = FailingOnce()  # type: ignore[assignment]


async def test_what_cannot_be_recorded_at_once_is_kept_and_recorded_later() -> None:
    world = await MemoryOutbox().open()
    fail_once(world, Unavailable("away"))
    await world.settle()
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: world.only.status is DeliveryStatus.DELIVERED)
    stop.set()
    await running
    assert len(world.postman.sent) == 1


async def test_more_results_than_one_statement_takes_are_recorded_one_part_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "RECORD_MAX", 2)
    world = await MemoryOutbox().open()
    for _ in range(5):
        await world.settle()
    assert await world.dispatcher.run_once() == 5
    assert {delivery.status for delivery in world.deliveries()} == {DeliveryStatus.DELIVERED}


async def test_a_record_that_the_database_refuses_is_dropped_and_the_delivery_comes_back() -> None:
    world = await MemoryOutbox().open()
    world.dispatcher.lease = timedelta(seconds=1)
    fail_once(world, RuntimeError("a rule was broken"), timedelta(seconds=2))
    await world.settle()
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: world.only.status is DeliveryStatus.DELIVERED)
    stop.set()
    await running
    assert (len(world.postman.sent), world.only.attempts) == (2, 1)


@pytest.mark.parametrize("fault", [Conflict("another was quicker"), Unavailable("the database is away")])
async def test_a_stop_that_cannot_hand_deliveries_back_leaves_them_to_their_leases(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise fault

    world = await MemoryOutbox().open()
    await world.settle()
    claimed = await world.dispatcher._claimed(1)
    monkeypatch.setattr(world.store.queue, "release", fails)
    await world.dispatcher._release(claimed)
    assert world.only.lease_until is not None


async def running_until(world: MemoryOutbox, seen: Callable[[], bool]) -> None:
    """Lets the worker's loop run until that is seen, and stops it in order."""
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(seen)
    stop.set()
    await running


@pytest.mark.parametrize("fault", [Conflict("another was quicker"), Unavailable("the database is away")])
async def test_a_claim_that_fails_is_made_again(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "BACK_OFF_SECONDS", 0.01)
    world = await MemoryOutbox().open()
    await world.settle()
    claim, faults = world.store.queue.claim, [fault, fault]

    async def fails(*arguments: Any) -> list[ClaimedDelivery]:
        if faults:
            raise faults.pop()
        return await claim(*arguments)

    monkeypatch.setattr(world.store.queue, "claim", fails)
    await running_until(world, lambda: world.only.status is DeliveryStatus.DELIVERED)
    assert len(world.postman.sent) == 1


async def test_what_is_claimed_while_the_worker_stops_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await MemoryOutbox().open()
    await world.settle()
    claim, stop = world.store.queue.claim, asyncio.Event()

    async def last(*arguments: Any) -> list[ClaimedDelivery]:
        claimed = await claim(*arguments)
        stop.set()
        return claimed

    monkeypatch.setattr(world.store.queue, "claim", last)
    await world.dispatcher.run(stop)
    assert world.postman.sent == []
    assert (world.only.status, world.only.attempts, world.only.lease_until) == (DeliveryStatus.PENDING, 0, None)


async def test_suspects_go_one_after_the_other_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "SUSPECTS_EVERY", 600.0)
    world = await MemoryOutbox().open()
    for _ in range(3):
        await world.settle()
    for _ in range(ALONE_FROM):
        await lose(world)
    await world.dispatcher.run_once()
    world.clock.set(max(one.next_attempt_at for one in world.deliveries() if one.next_attempt_at is not None))
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: len(world.postman.sent) == 3, seconds=20)
    stop.set()
    await running


async def test_a_suspect_that_never_has_its_turn_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "ALONE_WITHIN", 0.02)
    world = await MemoryOutbox().open()
    first = await a_suspect(world)
    gate = asyncio.Event()
    released: list[str] = []

    class Unanswering:
        async def send(self, *_: object, **__: object) -> TryResult:
            await gate.wait()
            return TryResult(200, None, 5)

    release = world.store.queue.release

    async def told(claimed: list[ClaimedDelivery]) -> None:
        released.extend(one.delivery.reference for one in claimed)
        await release(claimed)

    world.dispatcher.sender = Unanswering()
    monkeypatch.setattr(world.store.queue, "release", told)
    world.dispatcher._suspects_at = time.monotonic() + 0.05  # once the other is under way
    await world.settle()
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher.run(stop))
    await until(lambda: bool(released))
    gate.set()
    stop.set()
    await running
    assert released[0] == first


async def test_a_try_that_breaks_stops_no_other_and_comes_back_with_its_lease() -> None:
    world = await MemoryOutbox().open()
    world.dispatcher.lease = timedelta(0)
    sent = world.postman.send
    broken = [RuntimeError("a defect of ours")]

    class Breaking:
        async def send(self, *arguments: Any, **named: Any) -> TryResult:
            if broken:
                raise broken.pop()
            return await sent(*arguments, **named)

    world.dispatcher.sender = Breaking()
    for _ in range(2):
        await world.settle()
    await running_until(world, lambda: all(one.status is DeliveryStatus.DELIVERED for one in world.deliveries()))
    assert len(world.postman.sent) == 2


async def test_opened_secrets_are_forgotten_rather_than_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "KEYS_CACHED_MAX", 1)
    world = await MemoryOutbox().open()
    await world.webhooks.create(
        "biz_1", CreateWebhook(url="https://shop.example/more", environment=Environment.LIVE), by=AN_ADMIN
    )
    await world.settle()
    assert await world.dispatcher.run_once() == 2
    assert len(world.dispatcher._keys) == 1


async def test_deliveries_and_events_go_when_their_time_is_over() -> None:
    world = await MemoryOutbox().open()
    await world.settle()
    await world.dispatcher.run_once()
    assert await world.dispatcher.purge() == 0
    world.clock.move(RETENTION + timedelta(seconds=1))
    assert await world.dispatcher.purge() > 0
    assert world.deliveries() == []
    assert await world.dispatcher.purge() == 0


async def test_a_worker_that_is_cancelled_leaves_no_try_behind() -> None:
    world = await MemoryOutbox().open()
    await world.settle()
    was_let_go = asyncio.Event()

    class Endless:
        async def send(self, *_: object, **__: object) -> TryResult:
            try:
                return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
            finally:
                was_let_go.set()

    world.dispatcher.sender = Endless()
    running = asyncio.create_task(world.dispatcher.run(asyncio.Event()))
    await until(lambda: bool(world.dispatcher._trying))
    running.cancel()
    await was_let_go.wait()
    with pytest.raises(asyncio.CancelledError):
        await running
