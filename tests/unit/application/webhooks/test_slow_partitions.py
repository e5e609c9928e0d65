"""Which partitions a process holds for slow, and for how long."""

import asyncio

import pytest

from payagg.application.webhooks import slow_partitions
from payagg.application.webhooks.slow_partitions import SLOW_AFTER, SlowPartitions


async def test_a_partition_is_slow_while_and_after_an_attempt_takes_long_and_the_oldest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = asyncio.get_running_loop().time()
    monkeypatch.setattr(slow_partitions, "SLOW_MAX", 2)
    slow, long_ago = SlowPartitions(), now - SLOW_AFTER - 1
    slow.note_end("quick", now)
    for partition in ("a", "b", "a"):
        slow.note_end(partition, long_ago)
    assert slow.current([("c", long_ago), ("begun", now)]) == {"a", "c"}
    monkeypatch.setattr(slow_partitions, "SLOW_FOR", -1.0)
    slow.note_end("c", long_ago)
    assert slow.current([]) == {"a"}
