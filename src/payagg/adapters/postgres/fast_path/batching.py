"""Concurrent callers share one run of work."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement
from payagg.application.deadline import budget_of_request, shared_context
from payagg.application.ports.outside import Unavailable

Q = TypeVar("Q")
A = TypeVar("A")
QUEUE_SECONDS = 1.0  # of a client's patience; a request may meet several queues
SLOW_SECONDS = 0.05  # a run that takes longer waits for somebody, and nobody waits for it


class Batch(Generic[Q, A]):
    """Runs `work` on the gathered questions, at most `concurrency` runs at once and `size` questions in each.

    A lone caller never waits. Beside a run only one as large starts: small ones would follow one another, and they cost
    the most for each question (of 16 connections that initiate, 0.80 of Postgres' CPU and 1.06 to 1.14 of the rate). A
    run takes only questions asked before it began, so an answer is never older than its question. `work` returns an
    answer or an exception for each question, in order; an exception it raises goes to all. A caller that gives up does
    not disturb the others' run, and a request gives up at its own deadline. One that would wait for more than
    `queue_seconds`, as the last run went, is Unavailable at once: else, when more is asked than is answered, every
    answer comes after its client has left.
    """

    def __init__(
        self,
        work: Callable[[list[Q]], Awaitable[Sequence[A | Exception]]],
        *,
        size: int = 64,
        concurrency: int = 2,  # one run's answer is read while the next one commits
        queue_seconds: float = QUEUE_SECONDS,
    ) -> None:
        self._work = work
        self._queue_seconds = queue_seconds
        self._pace = 0.0  # seconds for each question of a full queue
        self._size = size
        self._lanes = concurrency
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._busy = 0
        self._latest = 0  # questions in the run that began last
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, question: Q) -> A:
        budget = budget_of_request()
        if budget is not None and len(self._waiting) * self._pace > self._queue_seconds:
            raise Unavailable("more is asked of the database than it answers in time")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, answer))
        if not self._busy or (self._busy < self._lanes and len(self._waiting) >= self._latest):
            self._start()
        elif self._busy < self._lanes and self._timer is None:
            self._timer = loop.call_later(SLOW_SECONDS, self._pass_by)
        if budget is None:
            return await answer  # its run ends in time
        began = loop.time()
        patience = loop.call_later(budget.left, _give_up, answer)
        try:
            return await answer
        finally:
            patience.cancel()
            budget.left -= loop.time() - began

    def _start(self) -> None:
        # The task begins after the callers of this loop turn have asked, so they share it.
        self._busy += 1
        self._latest = self._size
        task = asyncio.create_task(self._run(), context=shared_context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pass_by(self) -> None:
        self._timer = None
        if self._waiting and self._busy < self._lanes:
            self._start()

    async def close(self) -> None:
        """Returns when every run has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self) -> None:
        try:
            while taken := self._take():
                began = time.perf_counter()
                self._latest = len(taken)
                await self._answer(taken)
                self._pace = (time.perf_counter() - began) / (self._size * self._lanes)
        finally:
            # Here and not in a callback: a question asked in between would find no free run and wait for ever.
            self._busy -= 1

    async def _answer(self, taken: list[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers: Sequence[A | Exception] = await self._work([question for question, _ in taken])
        except Exception as error:  # noqa: BLE001 - each caller gets it
            answers = [error] * len(taken)
        except asyncio.CancelledError:
            for _, waiter in taken:
                waiter.cancel()
            raise
        for (_, waiter), answer in zip(taken, answers, strict=True):
            if waiter.done():
                continue
            if isinstance(answer, Exception):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)

    def _take(self) -> list[tuple[Q, asyncio.Future[A]]]:
        taken: list[tuple[Q, asyncio.Future[A]]] = []
        while self._waiting and len(taken) < self._size:
            question, waiter = self._waiting.popleft()
            if not waiter.done():
                taken.append((question, waiter))
        return taken


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(Unavailable("the database did not answer in time"))


class Note(NamedTuple):
    """A record of a refused request: a flood of them must cost little."""

    row: str  # identifies the locked row
    statement: Statement  # must be repeatable
    values: dict[str, Any]


def batched_notes(pool: StatementPool) -> Batch[Note, list[Any]]:
    """The rows of each note's statement, once durable."""

    async def keep(notes: list[Note]) -> list[list[Any]]:
        # In one order, so two processes that lock the same rows wait and do not deadlock.
        order = sorted(range(len(notes)), key=lambda place: notes[place].row)
        kept = await pool.all(*((notes[place].statement, notes[place].values) for place in order))
        answers = dict(zip(order, kept, strict=True))
        return [answers[place] for place in range(len(notes))]

    return Batch(keep, concurrency=1)
