"""Which partitions a process holds for slow, and for how long."""

import asyncio
from datetime import timedelta

import pytest

from payagg.application.webhooks import slow_partitions
from payagg.application.webhooks.slow_partitions import SlowPartitions


async def attempt(slow: SlowPartitions, partition: str) -> None:
    with slow.watching(partition):
        await asyncio.sleep(0.01)


async def test_a_partition_is_slow_after_a_long_attempt_and_the_oldest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = SlowPartitions()
    await attempt(slow, "quick")
    monkeypatch.setattr(slow_partitions, "ANSWERS_WELL", timedelta(0))
    monkeypatch.setattr(slow_partitions, "SLOW_MAX", 2)
    for partition in ("a", "b", "a", "c"):
        await attempt(slow, partition)
    assert slow.current() == {"a", "c"}
    monkeypatch.setattr(slow_partitions, "SLOW_FOR", 0.0)
    await attempt(slow, "c")
    await asyncio.sleep(0.01)
    assert slow.current() == {"a"}
