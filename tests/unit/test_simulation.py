"""The simulation: nothing breaks in 2,000 histories, one seed is one history, and it notices planted defects."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from payagg.testing.clocks import Chance
from payagg.testing.simulation import simulate
from payagg.testing.simulation.loop import NothingLeft, VirtualLoop
from payagg.testing.simulation.search import search
from payagg.testing.simulation.sometimes import SOMETIMES, never
from tests.support.planted_in_simulation import DEFECTS, Planted
from tests.support.planted_report import PROPERTY

SOURCE = Path(__file__).parents[2] / "src"
AT_ONCE = 1000
SEEDS_MAX = 1_500  # within so many every planted defect must be found
DIGESTS = """
from payagg.testing.simulation import simulate
print(*(simulate(seed).digest for seed in range(40)))
"""


@pytest.mark.long
@pytest.mark.parametrize("first", [0, AT_ONCE])
def test_no_history_breaks_an_invariant_and_everything_happens_sometimes(first: int) -> None:
    found = search(range(first, first + AT_ONCE))
    assert found.broken == {}, "replay one with: make simulate SEED=..."
    assert never(found.sometimes) == []
    assert set(found.sometimes) <= SOMETIMES, "a name that the list does not know"


@pytest.mark.parametrize("seed", [5136, 10033])
def test_an_attempt_that_was_passed_over_sets_no_time_for_an_ask(seed: int) -> None:
    assert simulate(seed).broken is None


def test_an_answer_that_comes_hours_later_takes_no_ask_away() -> None:
    assert simulate(19304).broken is None


def digests(python: str, hash_seed: str) -> str:
    """The traces of some seeds, as a fresh interpreter finds them."""
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run([python, "-c", DIGESTS], env=environ, capture_output=True, text=True, check=True)
    return ran.stdout


def test_one_seed_is_one_history_in_every_process() -> None:
    first, second = digests(sys.executable, "1"), digests(sys.executable, "2")
    assert first == second
    assert len(set(first.split())) == 40, "different seeds are different histories"


@pytest.mark.parametrize("python", ["python3.11", "python3.12", "python3.13"])
def test_one_seed_is_one_history_on_every_python(python: str) -> None:
    found = shutil.which(python)
    needs = [found or "", "-c", "import httpx, msgspec, structlog"]
    if found is None or subprocess.run(needs, capture_output=True, check=False).returncode:
        pytest.skip(f"no {python} that has the product's dependencies")
    assert digests(found, "0") == digests(sys.executable, "0")


def test_a_history_is_told_as_a_timeline() -> None:
    lines = simulate(1).timeline().splitlines()
    assert lines[0].startswith("seed 1, trace ")
    assert any("moves PAY-" in line for line in lines)
    assert lines[-1] == "broken: nothing"


def test_nothing_is_waited_for_and_ready_tasks_run_in_a_drawn_order() -> None:
    async def order() -> tuple[list[int], float]:
        came: list[int] = []

        async def come(number: int) -> None:
            await asyncio.sleep(0)
            came.append(number)

        await asyncio.gather(*(come(number) for number in range(8)))
        await asyncio.sleep(86_400 * 365)
        return came, asyncio.get_running_loop().time()

    def run(seed: int) -> tuple[list[int], float]:
        loop = VirtualLoop(Chance(seed))
        try:
            return loop.run_until_complete(order())
        finally:
            loop.close()

    runs = [run(seed) for seed in (1, 1, 2, 3)]
    assert runs[0] == runs[1]
    assert {tuple(sorted(came)) for came, _ in runs} == {tuple(range(8))}
    assert len({tuple(came) for came, _ in runs}) == 3
    assert [seconds for _, seconds in runs] == pytest.approx([86_400 * 365] * 4)


def test_a_loop_in_which_nothing_can_happen_any_more_says_so() -> None:
    loop = VirtualLoop(Chance(1))
    with pytest.raises(NothingLeft):
        loop.run_until_complete(asyncio.Event().wait())
    loop.close()


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name.replace(" ", "-"))
def test_the_simulation_finds_a_planted_defect(
    defect: Planted, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    defect.plant(monkeypatch)
    for seed in range(SEEDS_MAX):
        history = simulate(seed)
        if history.broken is not None and history.broken.name == defect.caught_by:
            record_property(PROPERTY, (defect.name, defect.caught_by, seed + 1))
            return
    pytest.fail(f"{defect.name}: {defect.caught_by} holds in {SEEDS_MAX} histories")
