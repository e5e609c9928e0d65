"""The sending loop over the in-memory outbox: the whole schedule by a clock that tests move."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from payagg_testing.builders import AN_ADMIN, HOUR, LIVE, SANDBOX, a_business, a_payment
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore

from lab.kit.around import around
from payagg.adapters.security import AesVault
from payagg.application import telemetry
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.reports import PAGE_BYTES
from payagg.application.ports.webhooks import ClaimedDelivery, DeliveryAttemptResult
from payagg.application.schemas.webhooks import ChangeWebhook, CreatedWebhook, CreateWebhook
from payagg.application.webhooks import dispatcher, slow_partitions
from payagg.domain.delivery import ALONE_FROM, RETENTION, SCHEDULE, Delivery, DeliveryStatus
from payagg.domain.payment import Trigger
from payagg.domain.signing import secret_key, signature
from payagg.domain.values import Environment
from payagg.domain.webhook import CONCURRENCY_START, OLD_SECRET_SIGNS_FOR, OLD_SECRETS_MAX
from tests.support.assembly import services_over
from tests.support.receivers import until

PENDING, DELIVERED, FAILED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
FAULTS = [Conflict("another was quicker"), Unavailable("the database is away")]


@dataclass
class Postman:
    """A sender that remembers and answers as told; a try takes no time, or lasts until the gate opens where it is told
    to `hold` this address or reference."""

    answer: Callable[[int], DeliveryAttemptResult] = lambda _: DeliveryAttemptResult(200, None, 5)
    gate: asyncio.Event | None = None
    hold: Callable[[str, str], bool] = lambda _url, _reference: True
    begun: list[str] = field(default_factory=list)  # addresses
    under_way: set[str] = field(default_factory=set)  # references
    beside: dict[str, set[str]] = field(default_factory=dict)  # what was under way when a reference's try began
    sent: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> DeliveryAttemptResult:
        reference = msgspec.json.decode(body)["data"]["reference"]
        self.begun.append(url)
        self.beside[reference] = self.under_way - {reference}
        self.under_way.add(reference)
        try:
            if self.gate is not None and self.hold(url, reference):
                await self.gate.wait()
        finally:
            self.under_way.discard(reference)
        self.sent.append((url, dict(headers), body))
        return self.answer(len(self.sent))


def failing(status: int) -> Callable[[int], DeliveryAttemptResult]:
    return lambda _: DeliveryAttemptResult(status, "it failed", 5)


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
        self.retention = services.retention
        self.delivery_log = services.delivery_log
        self.endpoint_id, self.secrets = "", list[str]()  # its signing secrets, the newest first

    async def open(self, environment: Environment = LIVE) -> "MemoryOutbox":
        await self.store.transaction.businesses.add(a_business())
        made = await self.create(environment)
        self.endpoint_id, self.secrets = made.id, [made.signing_secret]
        return self

    async def create(self, environment: Environment = LIVE, *events: str) -> CreatedWebhook:
        """Another endpoint."""
        command = CreateWebhook(url="https://shop.example/hooks", environment=environment, events=[*events])
        return await self.webhooks.create("biz_1", command, by=AN_ADMIN)

    async def rotate(self) -> None:
        made = await self.webhooks.rotate_secret("biz_1", self.endpoint_id, by=AN_ADMIN)
        self.secrets.insert(0, made.signing_secret)

    async def signers(self) -> list[str]:
        """The secrets that the next delivery is signed with."""
        await self.settle()
        await self.dispatcher.run_once()
        _, headers, body = self.postman.sent[-1]
        at = int(headers["webhook-timestamp"])
        known = {signature([secret_key(one)], headers["webhook-id"], at, body): one for one in self.secrets}
        return [known[part] for part in headers["webhook-signature"].split(" ")]

    async def settle(self, environment: Environment = LIVE, **fields: Any) -> str:
        """The reference of a payment that succeeded now."""
        reference = self.entropy.reference(self.clock.now())
        payment = a_payment(reference=reference, environment=environment, now=self.clock.now(), **fields)
        await self.store.add_payment(payment)
        await self.settlement.move(self.store.transaction, payment, Trigger.SUCCEED, actor="test")
        return reference

    def deliveries(self) -> list[Delivery]:
        return sorted(self.store.state.deliveries.values(), key=lambda delivery: delivery.id)

    def all_delivered(self) -> bool:
        return all(one.status is DELIVERED for one in self.deliveries())

    @property
    def only(self) -> Delivery:
        [delivery] = self.deliveries()
        return delivery

    def is_blamed(self) -> bool:
        """Whether failures are held against the endpoint."""
        return self.store.state.endpoints[self.endpoint_id].failing_since is not None

    def wait_until_due(self) -> None:
        due = [one.next_attempt_at for one in self.deliveries() if one.next_attempt_at is not None]
        self.clock.set(max(*due, self.clock.now()))

    async def run_to_the_end(self) -> list[timedelta]:
        """The times of the tries since the first, the clock set to each when it falls due."""
        start = self.clock.now()
        tries = []
        while self.only.status is PENDING:
            due = self.only.next_attempt_at
            assert due is not None
            if due > self.clock.now():
                self.clock.set(due - timedelta(milliseconds=1))
                assert await self.dispatcher.run_once() == 0
                self.clock.set(due)
            tries.append(self.clock.now() - start)
            assert await self.dispatcher.run_once() == 1
        return tries

    async def lose(self) -> None:
        """A worker claims what is due and dies; its lease runs out."""
        lease = timedelta(seconds=45)
        if await self.store.queue.claim(self.clock.now(), 10, 10, lease) == []:
            assert await self.store.queue.claim_poison_message(self.clock.now(), lease) is not None
        self.clock.move(lease)

    async def lose_until_suspect(self) -> None:
        """What is due kills workers until it is sent alone, and is due again."""
        for _ in range(ALONE_FROM):
            await self.lose()
        await self.dispatcher.run_once()
        self.wait_until_due()

    @asynccontextmanager
    async def worker(self, *, opens_gate: bool = True) -> AsyncIterator[None]:
        """The worker's loop, which is stopped in order at the end."""
        stop = asyncio.Event()
        running = asyncio.create_task(self.dispatcher.run(stop))
        yield
        stop.set()
        await asyncio.sleep(0)
        if self.postman.gate is not None and opens_gate:
            self.postman.gate.set()
        await running

    async def has_begun(self) -> None:
        await until(lambda: len(self.postman.begun) == 1)


@pytest.fixture
async def world() -> MemoryOutbox:
    return await MemoryOutbox().open()


@pytest.mark.rule("webhooks.9")
@pytest.mark.parametrize(("environment", "count"), [(LIVE, 10), (SANDBOX, 4)])
async def test_a_dead_endpoint_is_tried_by_the_whole_schedule_under_one_id(
    environment: Environment, count: int
) -> None:
    world = await MemoryOutbox(postman=Postman(failing(500))).open(environment)
    await world.settle(environment)
    tries, sent = await world.run_to_the_end(), world.postman.sent
    planned = [sum(SCHEDULE[environment][: number + 1], timedelta(0)) for number in range(count)]
    assert all(plan * 0.8 <= real <= plan * 1.2 for real, plan in zip(tries, planned, strict=True))
    assert (world.only.status, world.only.attempts) == (FAILED, count)
    assert len({(headers["webhook-id"], body) for _, headers, body in sent}) == 1
    if environment is LIVE:
        assert len({headers["webhook-timestamp"] for _, headers, _ in sent}) == count
        assert 60 * HOUR < tries[-1] < 91 * HOUR
        return  # an endpoint that failed for days is switched off, and gets no redelivery
    await world.delivery_log.redeliver("biz_1", world.endpoint_id, world.only.id, by=AN_ADMIN)
    assert await world.run_to_the_end() == [timedelta(0)], "a redelivery is one try"
    assert (world.only.status, world.only.attempts) == (FAILED, count + 1)


@pytest.mark.rule("webhooks.9")
async def test_redelivery_before_the_next_try_takes_none_from_the_schedule(world: MemoryOutbox) -> None:
    """An impatient merchant is not given up the sooner."""
    world.postman.answer = failing(500)
    await world.settle()
    await world.dispatcher.run_once()
    for _ in SCHEDULE[LIVE]:
        for _ in range(2):  # a click, and another before a worker has seen the first
            await world.delivery_log.redeliver("biz_1", world.endpoint_id, world.only.id, by=AN_ADMIN)
        assert await world.dispatcher.run_once() == 1
    assert (world.only.status, world.only.attempts) == (PENDING, 1)
    assert len(await world.run_to_the_end()) == len(SCHEDULE[LIVE]) - 1


@pytest.mark.rule("webhooks.10")
async def test_a_receiver_that_comes_back_gets_the_event_when_it_asked_for_it(world: MemoryOutbox) -> None:
    busy = DeliveryAttemptResult(429, "busy", 5, retry_after=timedelta(seconds=7))
    world.postman.answer = lambda number: DeliveryAttemptResult(200, None, 5) if number > 3 else busy
    await world.settle()
    await world.dispatcher.run_once()
    assert world.only.next_attempt_at == world.clock.now() + timedelta(seconds=7)
    assert len(await world.run_to_the_end()) == 3
    assert (world.only.status, world.only.last_status_code) == (DELIVERED, 200)
    [endpoint] = await world.webhooks.list_endpoints("biz_1")
    assert (endpoint.delivery_summary.successful, endpoint.delivery_summary.failed) == (1, 0)


@pytest.mark.rule("webhooks.12")
async def test_gone_ends_the_delivery_and_switches_the_endpoint_off_until_it_is_activated(world: MemoryOutbox) -> None:
    world.postman.answer = failing(410)
    await world.settle()
    await world.dispatcher.run_once()
    [endpoint] = await world.webhooks.list_endpoints("biz_1")
    assert (world.only.status, endpoint.is_active) == (FAILED, False)
    await world.settle()
    gone = world.only
    world.postman.answer = lambda _: DeliveryAttemptResult(200, None, 5)
    await world.webhooks.change("biz_1", world.endpoint_id, ChangeWebhook(is_active=True), by=AN_ADMIN)
    await world.settle()
    await world.delivery_log.redeliver("biz_1", world.endpoint_id, gone.id, by=AN_ADMIN)
    await world.dispatcher.run_once()
    assert [delivery.status for delivery in world.deliveries()] == [DELIVERED] * 2
    [endpoint] = await world.webhooks.list_endpoints("biz_1")
    assert (endpoint.is_active, endpoint.delivery_summary.failed) == (True, 0)


@pytest.mark.rule("webhooks.11")
@pytest.mark.parametrize("environment", Environment)
async def test_what_kills_every_worker_is_given_up_after_the_schedules_last_instant(environment: Environment) -> None:
    world = await MemoryOutbox().open(environment)
    last = world.clock.now() + sum(SCHEDULE[environment], timedelta(0))
    await world.settle(environment)
    deaths = 0
    while world.only.status is PENDING:
        world.wait_until_due()
        died_at = world.clock.now()
        await world.lose()
        deaths += 1
        if world.only.token is not None and deaths >= ALONE_FROM:
            await world.dispatcher.run_once()
    assert world.postman.sent == []
    assert last <= died_at <= last + timedelta(minutes=1)
    # As often as tries fail, and a few times more.
    assert deaths <= len(SCHEDULE[environment]) + ALONE_FROM
    assert (world.only.last_error, world.only.attempts) == ("given up: earlier tries were never recorded", 1)
    # It may be what the endpoint answers that kills them, so it gets one try at a time from now on.
    assert world.is_blamed()


@pytest.mark.rule("webhooks.11")
async def test_a_delivery_is_sent_by_the_first_worker_that_lives_however_many_died() -> None:
    world = await MemoryOutbox().open(SANDBOX)
    await world.settle(SANDBOX)
    for _ in range(10):
        await world.lose()
    assert world.clock.now() < world.only.created_at + sum(SCHEDULE[SANDBOX], timedelta(0))
    assert await world.dispatcher.run_once() == 1
    lost = "the worker died before it recorded its try"
    assert (world.only.status, world.only.last_error, world.is_blamed()) == (PENDING, lost, False)
    world.wait_until_due()
    assert await world.dispatcher.run_once() == 1
    # A try that was lost uses up no part of the schedule.
    assert (world.only.status, world.only.attempts, world.only.lost_tries) == (DELIVERED, 1, 0)


async def test_a_second_rotation_within_the_day_ends_no_old_secret(world: MemoryOutbox) -> None:
    """A button pressed twice, or by two people: the merchant's server still verifies with the first secret."""
    assert await world.signers() == world.secrets
    for _ in range(2):
        await world.rotate()
        assert await world.signers() == world.secrets
    world.clock.move(OLD_SECRET_SIGNS_FOR)
    assert await world.signers() == world.secrets[:1]
    for _ in range(OLD_SECRETS_MAX + 1):
        await world.rotate()
    assert await world.signers() == world.secrets[: OLD_SECRETS_MAX + 1]


async def test_a_suspect_is_sent_while_nothing_else_is_under_way(world: MemoryOutbox) -> None:
    first = await world.settle()
    await world.lose_until_suspect()
    world.postman.gate, world.postman.hold = asyncio.Event(), lambda _, reference: reference != first
    world.dispatcher._suspects_at = math.inf
    others, beside = {await world.settle() for _ in range(3)}, world.postman.beside
    async with world.worker():
        await until(lambda: bool(beside))
        world.dispatcher._suspects_at = 0.0  # now that the others are under way
        suspect = next(one for one in world.deliveries() if one.reference == first)
        await until(lambda: world.store.state.deliveries[suspect.id].token is not None)
        others.add(await world.settle())  # due while it waits for its turn
        assert first not in beside
        world.postman.gate.set()
        await until(world.all_delivered)
    assert beside[first] == set()
    assert all(first not in beside[other] for other in others)


async def test_suspects_go_one_after_the_other_in_one_turn(
    world: MemoryOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "SUSPECTS_EVERY", 600.0)
    for _ in range(3):
        await world.settle()
    await world.lose_until_suspect()
    async with world.worker():
        await until(lambda: len(world.postman.sent) == 3, seconds=20)


async def test_a_suspect_that_never_has_its_turn_is_handed_back(
    world: MemoryOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "ALONE_WITHIN", 0.02)
    first = await world.settle()
    await world.lose_until_suspect()
    world.postman.gate = asyncio.Event()
    released: list[str] = []
    release = world.store.queue.release

    async def told(claimed: list[ClaimedDelivery]) -> None:
        released.extend(one.delivery.reference for one in claimed)
        await release(claimed)

    monkeypatch.setattr(world.store.queue, "release", told)
    world.dispatcher._suspects_at = math.inf
    await world.settle()
    async with world.worker():
        await world.has_begun()
        world.dispatcher._suspects_at = 0.0  # now that the other is under way
        await until(lambda: bool(released))
    assert released[0] == first


@pytest.mark.parametrize(
    ("due", "room", "waits"),
    [(3 * CONCURRENCY_START, 400, True), (6, 2, True), (CONCURRENCY_START - 1, 400, False)],
    ids=["behind an endpoint's tries", "for room", "nothing"],
)
async def test_a_claim_before_the_poll_is_for_what_waits_behind_tries_alone(
    world: MemoryOutbox, due: int, room: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "CONCURRENT", room)
    world.dispatcher.poll_seconds = 60.0  # it never comes
    for _ in range(due):
        await world.settle()
    claims = list[list[ClaimedDelivery]]()
    around(world.store.queue, "claim", after=claims.append)
    async with world.worker():
        await until(world.all_delivered)
        await asyncio.sleep(0.05)
    assert len(claims) >= 3 if waits else len(claims) == 1


@pytest.mark.parametrize(("poll_seconds", "looks"), [(0.001, 6), (60.0, 2)])
async def test_a_worker_whose_tries_take_all_its_room_waits_for_one_to_end(
    world: MemoryOutbox, poll_seconds: float, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "CONCURRENT", 1)
    world.postman.gate, world.dispatcher.poll_seconds = asyncio.Event(), poll_seconds
    for _ in range(2):
        await world.settle()
    telemetry.counts.clear()
    async with world.worker():
        await until(lambda: telemetry.counts["worker_sweeps", "deliveries"] >= looks)
        assert len(world.postman.begun) == 1
        world.postman.gate.set()
        await until(lambda: len(world.postman.sent) == 2, seconds=20)


async def test_endpoints_that_fail_leave_room_for_others(world: MemoryOutbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "FAILING_MAX", 2)
    world.postman.gate = asyncio.Event()
    for _ in range(4):
        failing = world.store.state.endpoints[(await world.create()).id]
        world.store.state.endpoints[failing.id] = replace(failing, failing_since=world.clock.now())
    for _ in range(2 * CONCURRENCY_START):
        await world.settle()
    telemetry.counts.clear()
    async with world.worker():
        await until(lambda: telemetry.counts["worker_sweeps", "deliveries"] > 2)
        assert len(world.postman.begun) == CONCURRENCY_START + 2
        world.postman.gate.set()
        await until(world.all_delivered)


async def test_addresses_that_hang_leave_room_for_others(world: MemoryOutbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a payment's own address is never counted failing, and what hangs may accept in the end."""
    monkeypatch.setattr(dispatcher, "CONCURRENT", CONCURRENCY_START)
    monkeypatch.setattr(dispatcher, "FAILING_MAX", 2)
    monkeypatch.setattr(slow_partitions, "SLOW_AFTER", 0.01)
    dead, begun = "https://dead.example/hooks", world.postman.begun
    world.postman.gate, world.postman.hold = asyncio.Event(), lambda url, _: url == dead
    async with world.worker():
        await world.settle(webhook_url=dead)
        await until(lambda: dead in begun)
        await asyncio.sleep(0.05)
        for _ in range(2 * CONCURRENCY_START):
            await world.settle(webhook_url=dead)
        await until(lambda: all(one.status is DELIVERED for one in world.deliveries() if one.url is None))
        assert begun.count(dead) == 2
        world.postman.gate.set()
        await until(world.all_delivered)


async def test_a_worker_that_stops_finishes_what_is_under_way(world: MemoryOutbox) -> None:
    world.postman.gate = asyncio.Event()
    await world.settle()
    async with world.worker():
        await world.has_begun()
    assert world.only.status is DELIVERED


async def test_a_try_that_a_stop_cuts_short_is_due_at_once_and_held_against_nobody(
    world: MemoryOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "GRACE_SECONDS", 0.01)
    world.postman.gate, release = asyncio.Event(), world.store.queue.release

    async def told(claimed: list[ClaimedDelivery]) -> None:
        await asyncio.sleep(0)  # whoever claims it now must be the only one to send it
        assert not world.postman.under_way
        await release(claimed)

    monkeypatch.setattr(world.store.queue, "release", told)
    await world.settle()
    async with world.worker(opens_gate=False):
        await world.has_begun()
    assert (world.only.status, world.only.next_attempt_at) == (PENDING, world.clock.now())
    assert (world.only.attempts, world.only.lease_until, world.is_blamed()) == (0, None, False)


async def test_a_worker_that_is_cancelled_leaves_no_try_behind(world: MemoryOutbox) -> None:
    world.postman.gate = asyncio.Event()
    await world.settle()
    running = asyncio.create_task(world.dispatcher.run(asyncio.Event()))
    await world.has_begun()
    running.cancel()
    await until(lambda: not world.postman.under_way)
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("fault", [None, *FAULTS])
async def test_what_is_claimed_while_the_worker_stops_is_handed_back_or_left_to_its_lease(
    world: MemoryOutbox, fault: Exception | None
) -> None:
    def handing_back() -> None:
        if fault is not None:
            raise fault

    await world.settle()
    stop = asyncio.Event()
    around(world.store.queue, "claim", after=lambda _: stop.set())
    around(world.store.queue, "release", before=handing_back)
    await world.dispatcher.run(stop)
    assert (world.postman.sent, world.only.status) == ([], PENDING)
    assert (world.only.attempts, world.only.lease_until is None) == ((0, True) if fault is None else (1, False))


@pytest.mark.parametrize(
    ("step", "fault", "sent"),
    [
        *(("claim", fault, 1) for fault in [*FAULTS, RuntimeError("a defect of ours")]),
        ("send", RuntimeError("a defect of ours"), 2),
        ("finish", Unavailable("away"), 1),
        ("finish", RuntimeError("a rule was broken"), 2),
    ],
    ids=[
        "made again",
        "made again later",
        "made again all the same",
        "the lease brings it back",
        "recorded later",
        "dropped, back by its lease",
    ],
)
async def test_a_step_that_fails_once_loses_no_delivery_and_stops_no_other(
    world: MemoryOutbox, step: str, fault: Exception, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "BACK_OFF_SECONDS", 0.01)
    world.dispatcher.lease = timedelta(seconds=1)
    owner, faults = world.postman if step == "send" else world.store.queue, [fault]
    works = getattr(owner, step)

    async def fails(*arguments: Any, **named: Any) -> Any:
        if faults:
            world.clock.move(timedelta(seconds=2 if sent == 2 else 0))
            if step == "send":
                world.postman.sent.append(("", {}, b""))
            raise faults.pop()
        return await works(*arguments, **named)

    monkeypatch.setattr(owner, step, fails)
    await world.settle()
    async with world.worker():
        await until(world.all_delivered)
    assert (len(world.postman.sent), world.only.attempts) == (sent, 1)


async def test_more_results_than_one_statement_takes_are_recorded_part_by_part(
    world: MemoryOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "RECORD_MAX", 2)
    waiting = list[int]()
    around(world.store.queue, "finish", before=lambda: waiting.append(len(world.dispatcher._results)))
    for _ in range(5):
        await world.settle()
    assert await world.dispatcher.run_once() == 5
    assert (waiting, world.all_delivered()) == ([5, 3, 1], True)


async def test_a_secret_that_we_cannot_open_is_tried_again_and_held_against_nobody(world: MemoryOutbox) -> None:
    await world.settle()
    vault, world.dispatcher.vault = world.dispatcher.vault, AesVault((("another", b"a" * 32),))
    await world.dispatcher.run_once()
    assert (world.only.status, world.only.last_error) == (PENDING, "the signing secret cannot be opened")
    assert (world.is_blamed(), world.postman.sent) == (False, [])
    world.dispatcher.vault = vault
    world.wait_until_due()
    await world.dispatcher.run_once()
    assert world.only.status is DELIVERED


async def test_a_secret_made_after_the_key_was_lost_signs_without_the_old_one(world: MemoryOutbox) -> None:
    world.dispatcher.vault = AesVault((("another", b"a" * 32),))
    world.webhooks = replace(world.webhooks, vault=world.dispatcher.vault)
    await world.rotate()
    assert await world.signers() == world.secrets[:1]
    await world.rotate()
    assert await world.signers() == world.secrets[:2]


async def test_one_endpoints_closed_secret_keeps_no_others_from_signing(world: MemoryOutbox) -> None:
    endpoint = world.store.state.endpoints[world.endpoint_id]
    world.store.state.endpoints[world.endpoint_id] = replace(endpoint, secret=b"gone", events=("payment.failed",))
    await world.create(LIVE, "payment.failed")
    await world.settle(webhook_url="https://shop.example/own")
    await world.dispatcher.run_once()
    assert world.only.status is DELIVERED


async def test_deliveries_and_events_go_when_their_time_is_over(world: MemoryOutbox) -> None:
    await world.settle()
    await world.dispatcher.run_once()
    assert await world.retention.forget_deliveries() == 0
    world.clock.move(RETENTION + timedelta(seconds=1))
    assert await world.retention.forget_deliveries() > 0
    assert (world.deliveries(), await world.retention.forget_deliveries()) == ([], 0)


async def test_a_page_of_past_events_ends_early_where_its_bytes_are_many(world: MemoryOutbox) -> None:
    told = [await world.settle(metadata={"note": "x" * 15_000}) for _ in range(20)]
    pages, after, has_more = list[list[bytes]](), None, True
    while has_more:
        page = await world.delivery_log.events("biz_1", Environment.LIVE, after, 100)
        pages.append([msgspec.json.encode(event) for event in page.events])
        after, has_more = page.next_cursor, page.has_more
    assert all(PAGE_BYTES <= sum(map(len, bodies)) < PAGE_BYTES + 16_000 for bodies in pages[:-1])
    assert len(pages) == 3
    assert [msgspec.json.decode(body)["data"]["reference"] for bodies in pages for body in bodies] == told
