"""When a console session is over, on the memory store."""

from datetime import timedelta

import pytest
from payagg_testing.clocks import START, ManualClock
from payagg_testing.memory import MemoryStore

from payagg.domain.audit import ActorRealm
from payagg.extensions.console.console_sessions import ConsoleSessions, digest
from payagg.extensions.console.postgres import SessionRows
from tests.contracts.console_sessions import ConsoleSessionContract

IDLE = timedelta(minutes=30)
SECOND = timedelta(seconds=1)
MERCHANT = ActorRealm.MERCHANT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def sessions(clock: ManualClock) -> ConsoleSessions:
    sessions = ConsoleSessions(MemoryStore(), clock, IDLE)
    await sessions.begin("one", MERCHANT, "ada", "192.0.2.1", START + timedelta(hours=12))
    return sessions


@pytest.mark.rule("access.37")
async def test_a_session_that_is_not_used_for_the_idle_time_is_over(
    sessions: ConsoleSessions, clock: ManualClock
) -> None:
    for _ in range(3):
        clock.move(IDLE - SECOND)
        assert await sessions.see("one", "192.0.2.2")
    [listed] = await sessions.of(MERCHANT, "ada")
    assert (listed.seen_at, listed.address) == (clock.now(), "192.0.2.2")
    clock.move(IDLE)
    assert await sessions.of(MERCHANT, "ada") == []
    assert not await sessions.see("one", None)


@pytest.mark.rule("access.37")
async def test_a_session_ends_at_its_end_however_often_it_is_used(
    sessions: ConsoleSessions, clock: ManualClock
) -> None:
    for _ in range(47):
        clock.move(timedelta(minutes=15))
        assert await sessions.see("one", None)
    clock.move(timedelta(minutes=15))
    assert not await sessions.see("one", None)
    await sessions.begin("two", MERCHANT, "ada", None, clock.now() + IDLE)
    async with sessions.store.begin() as tx:
        assert await tx.of(SessionRows).find(digest("one")) is None


async def test_a_session_notes_a_request_at_most_once_a_minute(sessions: ConsoleSessions, clock: ManualClock) -> None:
    clock.move(timedelta(seconds=59))
    assert await sessions.see("one", "192.0.2.2")
    assert (await sessions.of(MERCHANT, "ada"))[0].seen_at == START
    clock.move(SECOND)
    assert await sessions.see("one", "192.0.2.2")
    assert (await sessions.of(MERCHANT, "ada"))[0].seen_at == clock.now()


class TestConsoleSessionsInMemory(ConsoleSessionContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
