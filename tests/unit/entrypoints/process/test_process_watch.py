"""What a process tells of itself, so that an operator sees a core that is too busy and memory that grows."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from payagg.application import telemetry
from payagg.entrypoints.process import server

MEBIBYTE = 2**20


@pytest.fixture(autouse=True)
def no_counts() -> Iterator[None]:
    telemetry.counts.clear()
    yield
    telemetry.counts.clear()


async def watched_once() -> None:
    """One look, which comes late by 0.06 s."""
    watching = asyncio.create_task(server.watch_process("server"))
    await asyncio.sleep(0)
    time.sleep(0.06)  # noqa: ASYNC251 - a callback that holds up the loop
    for _ in range(3):  # the timer, and what it wakes
        await asyncio.sleep(0)
    watching.cancel()


async def test_resident_memory_is_told_in_its_bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server, "STATM", tmp_path / "statm")
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096}.__getitem__)
    (tmp_path / "statm").write_text(f"99999 {100 * MEBIBYTE // 4096} 1 1 0 1 0\n")
    await watched_once()
    told = {key: number for key, number in telemetry.counts.items() if key[0].startswith("process_memory_bytes")}
    bucket, total = ("process_memory_bytes", "server", str(128 * MEBIBYTE)), ("process_memory_bytes_sum", "server")
    assert told == {bucket: 1, total: 100 * MEBIBYTE}


async def test_a_callback_that_takes_long_is_told_even_where_the_system_tells_no_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "STATM", tmp_path / "nothing")
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.01)
    await watched_once()
    assert sum(number for key, number in telemetry.counts.items() if key[:2] == ("loop_lag_seconds", "server")) == 1
    assert telemetry.counts["loop_lag_seconds_sum", "server"] >= 50_000
    assert not [key for key in telemetry.counts if key[0].startswith("process_memory_bytes")]
