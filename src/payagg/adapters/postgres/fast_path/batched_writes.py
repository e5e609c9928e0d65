"""Records of refused requests: a flood of them must cost little, so concurrent callers share a round trip and a
commit."""

from typing import Any, NamedTuple

from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement

BATCH_MAX = 64


class Note(NamedTuple):
    row: str  # identifies the locked row
    statement: Statement  # must be repeatable
    values: dict[str, Any]


class BatchedWrites:
    def __init__(self, pool: StatementPool) -> None:
        self._pool = pool
        self._asked: Batch[Note, list[Any]] = Batch(self._keep, size=BATCH_MAX, concurrency=1)

    async def keep(self, row: str, statement: Statement, **values: Any) -> list[Any]:
        """The statement's rows, once durable."""
        return await self._asked.ask(Note(row, statement, values))

    async def close(self) -> None:
        await self._asked.close()

    async def _keep(self, notes: list[Note]) -> list[list[Any]]:
        # In one order, so two processes that lock the same rows wait and do not deadlock.
        order = sorted(range(len(notes)), key=lambda place: notes[place].row)
        kept = await self._pool.all(*((notes[place].statement, notes[place].values) for place in order))
        answers = dict(zip(order, kept, strict=True))
        return [answers[place] for place in range(len(notes))]
