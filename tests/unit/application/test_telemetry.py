"""What a process tells of itself, whatever the database says to it."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest
from payagg_testing.memory import MemoryStore
from structlog.testing import capture_logs

from payagg.application import telemetry
from payagg.application.telemetry import count, keep_flushing, trace_of


def test_a_trace_follows_causes_and_holds_no_message() -> None:
    try:
        try:
            raise ValueError("inner canary")
        except ValueError as inner:
            raise RuntimeError("outer canary") from inner
    except RuntimeError as error:
        trace = trace_of(error)
    assert [line for line in trace if not line.startswith(" ")] == ["RuntimeError", "ValueError"]
    assert "canary" not in "".join(trace)


async def test_counts_that_the_database_refuses_are_kept_and_the_next_ones_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As while a dump is restored under a server that runs: the table is gone for a moment."""
    monkeypatch.setattr(telemetry, "FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(telemetry, "counts", Counter())

    class Restored(MemoryStore):
        refusals = 0

        async def add_counts(self, counts: Mapping[tuple[str, ...], int]) -> None:
            if not self.refusals:
                self.refusals += 1
                raise RuntimeError("the database refused a statement: 42P01")
            await super().add_counts(counts)
            added.set()

    added = asyncio.Event()
    count("anomalies", "MISMATCH")
    store = Restored()
    with capture_logs() as lines:
        keeping = asyncio.create_task(keep_flushing(store))
        async with asyncio.timeout(10):
            await added.wait()
        keeping.cancel()
    assert await store.counts() == {("anomalies", "MISMATCH"): 1}
    assert [line["event"] for line in lines] == ["counters cannot be added"]
