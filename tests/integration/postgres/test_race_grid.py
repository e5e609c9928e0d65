"""The race grid: who may act on one payment at the same moment, every pair of them, between two servers.

Each round is one payment. Its racers start after small random delays, and whichever wins, some order of their steps
must explain every answer and all that is stored (lab/races/model.py).
"""

import random
from collections.abc import AsyncIterator
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from lab.races.actors import ACTORS, raced
from lab.races.grid import Grid, a_grid
from tests.support.rounds import ROUNDS

PAIRS = tuple(combinations_with_replacement(ACTORS, 2))
TRIO = ("verify", "event of success", "simulated success")
FEW = max(1, ROUNDS // 10)  # for each of a hundred pairs


@pytest.fixture
async def grid(database_url: str, tmp_path: Path) -> AsyncIterator[Grid]:
    async with a_grid(database_url, tmp_path) as grid:
        yield grid


async def rounds(grid: Grid, names: tuple[str, ...], number: int) -> None:
    for turn in range(number):
        seed = f"{' x '.join(names)} {turn}"
        print(seed)  # shown with a failure
        await raced(grid, names, seed, random.Random(seed))


@pytest.mark.parametrize("first", ACTORS)
async def test_an_order_explains_what_each_pair_leaves(grid: Grid, first: str) -> None:
    for names in PAIRS:
        if names[0] == first:
            await rounds(grid, names, FEW)


async def test_an_order_explains_what_three_successes_leave(grid: Grid) -> None:
    await rounds(grid, TRIO, ROUNDS)
