"""Callers of one moment share a run, and nothing but the run."""

import asyncio
from typing import Any

import pytest

from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.application import deadline
from payagg.application.ports.outside import Unavailable


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


async def asking(batch: "Batch[int, str]", *numbers: int) -> "list[asyncio.Task[str]]":
    """Callers that wait for their answers."""
    tasks = [asyncio.create_task(batch.ask(number)) for number in numbers]
    await settled()
    return tasks


async def test_callers_of_one_moment_share_a_run_and_each_has_its_own_answer(work: Work) -> None:
    batch = Batch(work, size=10, concurrency=1)
    assert [await batch.ask(1), await batch.ask(2)] == ["1", "2"]
    answers: list[Any] = await asyncio.gather(*map(batch.ask, (1, -2, 3)), return_exceptions=True)
    assert (answers[0], type(answers[1]), answers[2]) == ("1", ValueError, "3")
    assert work.runs == [[1], [2], [1, -2, 3]]
    # A run that fails as a whole fails its callers, and not the next ones.
    failed = await asyncio.gather(*map(batch.ask, (1, 1313)), return_exceptions=True)
    assert [type(answer) for answer in failed] == [RuntimeError, RuntimeError]
    assert await batch.ask(2) == "2"


async def test_runs_are_bounded_in_size_and_in_number(work: Work) -> None:
    batch = Batch(work, size=3, concurrency=2)
    work.gate.clear()
    asked = await asking(batch, *range(10))
    assert len(work.runs) == 2
    work.gate.set()
    assert await asyncio.gather(*asked) == [str(number) for number in range(10)]
    assert max(map(len, work.runs)) == 3


async def test_beside_a_run_only_one_as_large_starts_unless_it_is_slow(work: Work) -> None:
    batch = Batch(work, size=10, concurrency=2)
    work.gate.clear()
    asked = await asking(batch, 1, 2, 3)
    asked += await asking(batch, 4, 5)
    assert work.runs == [[1, 2, 3]]
    asked += await asking(batch, 6)
    assert work.runs == [[1, 2, 3], [4, 5, 6]]
    asked += await asking(batch, 7)
    work.gate.set()
    await asyncio.gather(*asked)
    assert work.runs[2:] == [[7]]
    work.gate.clear()
    asked = [*await asking(batch, 8, 9), *await asking(batch, 10)]
    async with asyncio.timeout(5):
        while work.runs[3:] != [[8, 9], [10]]:  # noqa: ASYNC110 - a run, for which nobody asks anew
            await asyncio.sleep(0.01)
    work.gate.set()
    await asyncio.gather(*asked)


async def test_a_request_that_would_wait_too_long_is_refused_at_once(work: Work) -> None:
    """Its client would have left by then, and that of everybody behind it."""
    batch = Batch(work, size=1, concurrency=1, queue_seconds=0.0)
    deadline.begin_request()
    assert await batch.ask(1) == "1"  # as long as this took others are expected to take
    work.gate.clear()
    (running,), (waiting,) = await asking(batch, 2), await asking(batch, 3)
    with pytest.raises(Unavailable, match="more is asked"):
        await batch.ask(4)
    workers = asyncio.create_task(batch.ask(5), context=deadline.shared_context())  # it has no client
    await settled()
    work.gate.set()
    assert [*await asyncio.gather(running, waiting, workers)] == ["2", "3", "5"]
    assert await batch.ask(6) == "6"
    assert work.runs == [[1], [2], [3], [5], [6]]


async def test_a_caller_that_gives_up_hurts_nobody(work: Work) -> None:
    batch = Batch(work, size=10, concurrency=1)
    work.gate.clear()
    asked, (late,) = await asking(batch, 0, 1, 2), await asking(batch, 4)
    asked[0].cancel()
    late.cancel()
    await settled()
    work.gate.set()
    assert await asyncio.gather(*asked[1:]) == ["1", "2"]
    assert await batch.ask(5) == "5"
    assert work.runs == [[0, 1, 2], [5]]


async def test_a_question_is_not_answered_by_a_run_that_began_before_it(work: Work) -> None:
    """What its caller was told of before, as that a key is revoked, must be seen."""
    batch = Batch(work, size=10, concurrency=1)
    work.gate.clear()
    before, after = await asking(batch, 1), await asking(batch, 1)
    work.gate.set()
    await asyncio.gather(*before, *after)
    assert work.runs == [[1], [1]]


async def test_a_question_asked_by_an_answered_caller_at_once_is_answered(work: Work) -> None:
    batch = Batch(work, size=10, concurrency=1)

    async def asks_again(number: int) -> str:
        return await batch.ask(number) + await batch.ask(number)

    async with asyncio.timeout(30):
        assert await asyncio.gather(*map(asks_again, range(50))) == [str(n) * 2 for n in range(50)]


async def test_closing_waits_for_the_runs_in_flight(work: Work) -> None:
    batch = Batch(work, size=10, concurrency=1)
    work.gate.clear()
    [asked] = await asking(batch, 1)
    closing = asyncio.create_task(batch.close())
    await settled()
    assert not closing.done()
    work.gate.set()
    await closing
    assert await asked == "1"


async def test_a_request_gives_up_at_its_deadline_and_leaves_the_others_their_answer(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 0.01)
    batch = Batch(work, size=10, concurrency=1)
    work.gate.clear()

    async def request(number: int) -> str:
        deadline.begin_request()
        return await batch.ask(number)

    calls = [asyncio.create_task(work_) for work_ in (request(1), batch.ask(2))]
    with pytest.raises(Unavailable):
        await calls[0]
    work.gate.set()
    assert await calls[1] == "2"
