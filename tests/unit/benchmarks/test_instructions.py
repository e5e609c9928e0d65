"""What counts a request's instructions, and when a commit costs too much."""

import asyncio
import io

import pytest

from benchmarks.front import REQUESTS, Cpu, counted
from benchmarks.instructions import MOST, REPEATS, Figures, compared
from tests.unit.entrypoints.process.test_logs import logging_to


def test_the_front_answers_every_operation_that_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(io.StringIO()):
        asyncio.run(counted(Cpu()))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    names = ["initiate", "read", "list", "public", "options", "process", "verify", "event"]
    assert [name for name, _ in lines] == names
    assert all(int(ns) > 1_000 * REQUESTS for _, ns in lines)


def judged(*reads: float) -> tuple[list[str], int]:
    """What is above in counts that give such reads beside 100, and how many counts it took."""
    rounds = [[{"initiate": 100.0, "read": read}, {"initiate": 100.0, "read": 100.0}] for read in reads]
    left = iter(rounds)

    def count() -> list[Figures]:
        return next(left)

    _, above = compared(count)
    return above, len(reads) - len(list(left))


def test_an_operation_costs_too_much_only_when_every_repeat_says_so() -> None:
    dear = 100 * MOST + 1
    assert judged(*[dear] * REPEATS) == (["read"], REPEATS)
    assert judged(dear, 100, dear) == ([], 2)
    assert judged(100 * MOST, dear, dear) == ([], 1)
