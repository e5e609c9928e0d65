"""Inbound events on the memory store: proven, kept, handled once, and handled later when they could not be at once."""

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar

import pytest
from payagg_testing.builders import HOUR, a_report
from payagg_testing.clocks import START
from structlog.testing import capture_logs

from payagg.adapters.providers import PROVIDERS
from payagg.application.payments.provider_events import FIRST_RETRY, RETRY_BATCH
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.ports.providers import ProviderEvent
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import ChargeFacts
from payagg.domain.payment import Status
from payagg.domain.report import Outcome
from tests.support.memory_shop import MemoryShop

SIGNED = {"x-provider_a-signature": "account of provider_a"}
numbers = count(1)


class FailingSettlement(Settlement):
    """Ends its next reports with these faults, one each; None is a good one."""

    faults: ClassVar[list[Exception | None]] = []

    async def report(self, *arguments: Any, **named: Any) -> Any:
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault
        return await super().report(*arguments, **named)


class EventShop(MemoryShop):
    """A payment handed to provider_a, and events about it."""

    async def begun(self) -> "EventShop":
        await self.open()
        settlement = FailingSettlement(self.store, self.clock, self.services.settlement.entropy)
        self.fail(0)
        self.reference = await self.handed_over()
        self.inbound = replace(self.services.provider_events, settlement=settlement)
        return self

    def body(self, outcome: Outcome = Outcome.SUCCEEDED, **fields: Any) -> bytes:
        report = a_report(outcome, provider_reference=self.reference, **fields)
        return self.a.event(report, next(numbers))

    async def receive(self, body: bytes) -> None:
        await self.inbound.receive(PROVIDERS[0].routes[0], body, SIGNED)

    def fail(self, times: int, fault: Exception | None = None, after: int = 0) -> None:
        """So many reports, `after` so many good ones."""
        FailingSettlement.faults[:] = [*[None] * after, *[fault or RuntimeError("a defect")] * times]

    def kept(self) -> list[ProviderEvent]:
        return sorted(self.store.state.inbox.values(), key=lambda event: event.received_at)

    async def status(self) -> Status:
        return (await self.payment(self.reference)).status


@pytest.fixture
async def world() -> EventShop:
    return await EventShop().begun()


async def test_an_event_of_two_facts_stays_due_until_both_are_stored(world: EventShop) -> None:
    await world.receive(world.body(facts=ChargeFacts(provider_id="1")))
    second = ChargeFacts(provider_id="2")
    world.fail(1, Unavailable("no connection"), after=1)
    await world.receive(world.body(Outcome.REVERSED, facts=second))
    assert await world.anomalies() == [AnomalyKind.SECOND_CHARGE]
    world.clock.move(HOUR)
    assert await world.inbound.retry_due() == 1
    assert await world.anomalies() == [AnomalyKind.LATE_REVERSAL, AnomalyKind.SECOND_CHARGE]


async def test_two_equal_refunds_without_an_id_are_two(world: EventShop) -> None:
    await world.receive(world.body())
    for body in [world.body(Outcome.REVERSED, amounts=frozenset({75_000})) for _ in range(2)]:
        for _ in range(2):
            await world.receive(body)
    assert await world.anomalies() == [AnomalyKind.PARTIAL_REFUND] * 2


async def test_only_a_defect_of_ours_logs_an_error(world: EventShop) -> None:
    for fault in (Unavailable("no connection"), Conflict("deadlock"), RuntimeError("a defect")):
        world.fail(1, fault)
        with capture_logs() as lines:
            await world.receive(world.body())
        level = "error" if isinstance(fault, RuntimeError) else "warning"
        assert [line["log_level"] for line in lines if "inbound" in line["event"]] == [level]
    assert [event.next_attempt_at for event in world.kept()] == [START + FIRST_RETRY] * 3


async def test_an_event_waits_while_no_provider_has_its_slug(world: EventShop) -> None:
    world.fail(1)
    await world.receive(world.body())
    providers = world.services.payment_options.providers
    del providers["provider_a"]  # type: ignore[attr-defined]
    world.clock.move(HOUR)
    with capture_logs() as lines:
        assert await world.inbound.retry_due() == 1
    assert [line["log_level"] for line in lines] == ["warning"]
    providers["provider_a"] = world.a  # type: ignore[index]
    world.clock.move(HOUR)
    assert await world.inbound.retry_due() == 1
    assert await world.status() is Status.SUCCESS


async def test_an_event_whose_handling_fails_is_due_again_after_pauses_that_double(world: EventShop) -> None:
    world.fail(12)
    await world.receive(world.body())
    [event] = world.kept()
    assert (event.result, event.handled_at, event.next_attempt_at) == (None, None, START + FIRST_RETRY)
    pause, pauses = FIRST_RETRY, []
    for number in range(2, 14):
        world.clock.move(pause - timedelta(milliseconds=1))
        assert await world.inbound.retry_due() == 0
        world.clock.move(timedelta(milliseconds=1))
        assert await world.inbound.retry_due() == 1
        [event] = world.kept()
        assert event.attempts == number
        if event.next_attempt_at is not None:
            pause = event.next_attempt_at - world.clock.now()
            pauses.append(pause)
    assert [pause.total_seconds() / 60 for pause in pauses] == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    assert (event.result, event.handled_at) == ("MOVED", world.clock.now())
    assert await world.status() is Status.SUCCESS


async def test_tries_are_counted_as_far_as_the_column_reaches(world: EventShop) -> None:
    world.fail(3)
    await world.receive(world.body())
    await world.store.transaction.inbox.save(replace(world.kept()[0], attempts=29_999))
    for _ in range(2):
        world.clock.move(HOUR)
        assert await world.inbound.retry_due() == 1
        assert [event.attempts for event in world.kept()] == [30_000]


async def test_so_many_are_taken_up_at_once_oldest_first(world: EventShop) -> None:
    world.fail(RETRY_BATCH + 5)
    for _ in range(RETRY_BATCH + 5):
        await world.receive(world.body(Outcome.PENDING))
        world.clock.move(timedelta(milliseconds=1))
    world.clock.move(FIRST_RETRY)
    assert [await world.inbound.retry_due() for _ in range(3)] == [RETRY_BATCH, 5, 0]
    assert {event.result for event in world.kept()} == {"UNCHANGED"}
