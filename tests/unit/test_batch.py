"""Callers of one moment share a run, and nothing but the run."""

import asyncio
from typing import Any

import pytest

from payagg.adapters.postgres.batch import Batch

pytestmark = pytest.mark.anyio


class Work:
    """Records each run, and holds it until the test lets it go on."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, questions: list[int]) -> list[str | Exception]:
        self.runs.append(questions)
        await self.gate.wait()
        if 1313 in questions:
            raise RuntimeError("all of them")
        return [ValueError(question) if question < 0 else str(question) for question in questions]


@pytest.fixture
def work() -> Work:
    return Work()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def at_once(work: Work, batch: Batch[int, str], *questions: int) -> list[Any]:
    """The answers to callers of one moment, all of whom ask before the first is answered."""
    work.gate.clear()
    asked = [asyncio.create_task(batch.ask(question)) for question in questions]
    await settled()
    work.gate.set()
    return await asyncio.gather(*asked, return_exceptions=True)


async def test_a_lone_caller_runs_alone(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)
    assert [await batch.ask(1), await batch.ask(2)] == ["1", "2"]
    assert work.runs == [[1], [2]]


async def test_callers_of_one_moment_share_what_runs_after_the_first(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)
    assert await at_once(work, batch, 0, 1, 2, 3, 4) == ["0", "1", "2", "3", "4"]
    assert work.runs == [[0], [1, 2, 3, 4]]


async def test_a_question_asked_during_a_run_waits_for_the_next(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)
    work.gate.clear()
    first = asyncio.create_task(batch.ask(1))
    await settled()
    second, third = asyncio.create_task(batch.ask(2)), asyncio.create_task(batch.ask(3))
    await settled()
    assert work.runs == [[1]]
    work.gate.set()
    assert [await first, await second, await third] == ["1", "2", "3"]
    assert work.runs == [[1], [2, 3]]


async def test_runs_are_bounded_in_size_and_in_number(work: Work) -> None:
    batch = Batch(work, size=3, lanes=2)
    work.gate.clear()
    asked = [asyncio.create_task(batch.ask(number)) for number in range(10)]
    await settled()
    assert len(work.runs) == 2
    work.gate.set()
    assert await asyncio.gather(*asked) == [str(number) for number in range(10)]
    assert max(map(len, work.runs)) == 3


async def test_each_caller_has_its_own_refusal(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)
    answers = await at_once(work, batch, -1, 1, -2, 3)
    assert work.runs == [[-1], [1, -2, 3]]
    assert [type(answer) for answer in answers] == [ValueError, str, ValueError, str]
    assert (answers[1], answers[3]) == ("1", "3")


async def test_a_failed_run_fails_its_callers_and_not_the_next_ones(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)
    answers = await at_once(work, batch, 0, 1, 1313)
    assert [type(answer) for answer in answers] == [str, RuntimeError, RuntimeError]
    assert await batch.ask(2) == "2"
    with pytest.raises(RuntimeError):
        await batch.ask(1313)
    assert await batch.ask(3) == "3"


@pytest.mark.parametrize("gives_up", [0, 1])
async def test_a_caller_that_gives_up_hurts_nobody(work: Work, gives_up: int) -> None:
    batch = Batch(work, size=10, lanes=1)
    work.gate.clear()
    asked = [asyncio.create_task(batch.ask(number)) for number in range(4)]
    await settled()
    asked.pop(gives_up).cancel()
    await settled()
    work.gate.set()
    assert await asyncio.gather(*asked) == [str(number) for number in range(4) if number != gives_up]
    assert work.runs == ([[0], [1, 2, 3]] if gives_up == 0 else [[0], [2, 3]])
    await batch.close()


async def test_a_question_asked_by_an_answered_caller_at_once_is_answered(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)

    async def asks_again(number: int) -> str:
        return await batch.ask(number) + await batch.ask(number)

    async with asyncio.timeout(30):
        assert await asyncio.gather(*map(asks_again, range(50))) == [str(n) * 2 for n in range(50)]


async def test_closing_waits_for_the_runs_in_flight(work: Work) -> None:
    batch = Batch(work, size=10, lanes=1)
    work.gate.clear()
    asked = asyncio.create_task(batch.ask(1))
    await settled()
    closing = asyncio.create_task(batch.close())
    await settled()
    assert not closing.done()
    work.gate.set()
    await closing
    assert await asked == "1"
