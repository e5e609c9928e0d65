"""Many histories, in several processes."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from lab.simulation.history import simulate

BATCH = 50  # histories that a job lives through at once
TOLD_EVERY = 20  # batches


@dataclass
class SearchResult:
    """What some histories came to; `sometimes` counts the histories in which a thing happened."""

    histories: int = 0
    sometimes: Counter[str] = field(default_factory=Counter)
    broken: dict[int, str] = field(default_factory=dict)  # by seed

    def add(self, other: "SearchResult") -> None:
        self.histories += other.histories
        self.sometimes.update(other.sometimes)
        self.broken.update(other.broken)


def search(seeds: Sequence[int]) -> SearchResult:
    """Lives through a history of each seed."""
    found = SearchResult()
    for seed in seeds:
        history = simulate(seed)
        found.histories += 1
        found.sometimes.update(dict.fromkeys(history.sometimes, 1))
        if history.broken is not None:
            found.broken[seed] = str(history.broken)
    return found


def search_all(seeds: range, jobs: int, say: Callable[[str], None]) -> SearchResult:
    """The same in `jobs` processes; `say` is told now and then how far it has come."""
    found = SearchResult()
    # Fresh interpreters: no job inherits what another has imported or drawn.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = [pool.submit(search, seeds[at : at + BATCH]) for at in range(0, len(seeds), BATCH)]
        for number, part in enumerate(as_completed(parts), start=1):
            found.add(part.result())
            if number % TOLD_EVERY == 0:
                say(f"... {found.histories} histories, {len(found.broken)} broken")
    return found
