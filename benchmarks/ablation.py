"""What each optimisation is worth: the product whole and without it, side by side on one database, in turn.

Both sides start in the same way and have the same age. A ratio is the median of those of single rounds, whose two sides
follow each other at once, so that it says the same on a machine whose speed drifts.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import psycopg

from benchmarks.cpu import cpu_seconds
from benchmarks.deliveries import fall_due, seed_deliveries, settle
from benchmarks.harness import Round, count, process, wait_for, wrk
from benchmarks.without import arguments
from tests.support.ports import free_port

EVERY = ("initiate", "read", "lone")
LOADED = ("initiate", "read")
OPERATIONS: dict[str, tuple[str, ...]] = {
    "nothing": LOADED,
    "remembered-keys": EVERY,
    "batching": EVERY,
    "by-index": LOADED,
    "prepared": EVERY,
    "uvloop": LOADED,
    "response-classes": LOADED,
    "compact-json": ("initiate",),
    "log-lines": LOADED,
    "collector": LOADED,
    "recorded-together": ("deliver",),
    "own-sockets": ("deliver",),
}
CONNECTIONS = {"initiate": 64, "read": 64, "lone": 1}
DELIVERIES = 3_000  # of a round, for each of its seconds
STARTING = 500  # deliveries of a worker that has just begun, while tries at once still grow
Figures = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Turn:
    """One round of one side."""

    rate: float
    p50: float
    p99: float
    cpu: float  # ms of the process for each operation
    errors: int


class Ablation:
    """One database; the calls of wrk are those of `benchmarks.run`."""

    def __init__(
        self, url: str, folder: Path, calls: dict[str, Path], environment: dict[str, str], rounds: int, seconds: int
    ) -> None:
        self.url, self.folder, self.calls, self.environment = url, folder, calls, environment
        self.rounds, self.seconds = rounds, seconds
        self.receiver = ""
        self.delivered = 0

    def measure(self) -> Figures:
        figures: Figures = {}
        with ExitStack() as stack:
            for name, operations in OPERATIONS.items():
                if operations == ("deliver",):
                    self._seed(stack)
                    figures[name] = {"deliver": self._in_turn(name, "deliver", self._deliver((name,)))}
                    continue
                with ExitStack() as pair:
                    whole, without = (self._server(pair, name, names) for names in ((), (name,)))
                    figures[name] = {
                        operation: self._in_turn(
                            name, operation, (self._load(operation, *whole), self._load(operation, *without))
                        )
                        for operation in operations
                    }
        return figures

    def _in_turn(self, name: str, operation: str, sides: Sequence[Callable[[], Turn]]) -> dict[str, Any]:
        """Runs both sides `rounds` times after a warm-up, each first in every second round."""
        taken: list[list[Turn]] = [[], []]
        for number in range(self.rounds + 1):
            for side in (0, 1) if number % 2 else (1, 0):
                turn = sides[side]()
                if number:
                    taken[side].append(turn)
        whole, without = taken
        pairs = [own.rate / other.rate for own, other in zip(whole, without, strict=True)]
        print(f"  {name} {operation} {median(pairs):.3f}", file=sys.stderr, flush=True)
        return {
            "with": asdict(middle_turn(whole)),
            "without": asdict(middle_turn(without)),
            "ratio": median(pairs),
            "ratios": sorted(pairs),
            "cpu_ratio": median(own.cpu / other.cpu for own, other in zip(whole, without, strict=True)),
            "rounds": [[asdict(own), asdict(other)] for own, other in zip(whole, without, strict=True)],
        }

    def _server(self, stack: ExitStack, name: str, names: Sequence[str]) -> tuple[str, psutil.Process]:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        # To /dev/null, where the others write, a line costs next to nothing.
        log = self.folder / f"log-{len(names)}" if name == "log-lines" else None
        started = process(arguments(names, port), self.environment, url + "/readyz", log=log)
        return url, stack.enter_context(started)

    def _load(self, operation: str, url: str, server: psutil.Process) -> Callable[[], Turn]:
        def turn() -> Turn:
            begun = cpu_seconds(server)
            mode = "get" if operation == "read" else "initiate"
            done: Round = wrk(url, mode, self.calls[mode], CONNECTIONS[operation], self.seconds)
            used = cpu_seconds(server) - begun
            return Turn(done.rate, done.p50, done.p99, 1000 * used / (done.rate * self.seconds), done.errors)

        return turn

    def _seed(self, stack: ExitStack) -> None:
        """Deliveries for every round of every operation on the worker, and who receives them."""
        if self.receiver:
            return
        port = free_port()
        self.receiver = f"http://127.0.0.1:{port}"
        stack.enter_context(process(["-m", "benchmarks.receiver", str(port)], {}, self.receiver + "/count"))
        runs = 2 * (self.rounds + 1) * sum("deliver" in operations for operations in OPERATIONS.values())
        seed_deliveries(self.url, self.environment, f"{self.receiver}/hook", runs * DELIVERIES * self.seconds)

    def _deliver(self, names: Sequence[str]) -> tuple[Callable[[], Turn], Callable[[], Turn]]:
        return (lambda: self._delivered(())), (lambda: self._delivered(names))

    def _delivered(self, names: Sequence[str]) -> Turn:
        """One worker from its start until all that was due has come. What comes twice, or is not recorded, is an error."""
        before, number = self.delivered, DELIVERIES * self.seconds
        fall_due(self.url, before + 1, number)
        settle(self.url)
        with process(arguments(names), self.environment, None) as worker:
            wait_for(self.receiver, before + STARTING)
            start, begun, used = count(self.receiver), time.monotonic(), cpu_seconds(worker)
            wait_for(
                self.receiver, before + number - 1_000
            )  # without the last ones, of which there are too few at once
            sent = count(self.receiver) - start
            took, used = time.monotonic() - begun, cpu_seconds(worker) - used
            wait_for(self.receiver, before + number)
        self.delivered = count(self.receiver)
        errors = self.delivered - before - number + self._unrecorded()
        return Turn(sent / took, 0, 0, 1000 * used / sent, errors)

    def _unrecorded(self) -> int:
        """Deliveries that fell due and are not known to have arrived."""
        with psycopg.connect(self.url) as connection:
            found = connection.execute(
                "SELECT count(*) FROM deliveries WHERE status <> 'DELIVERED' AND next_attempt_at < now() + interval '1 hour'"
            ).fetchone()
        assert found is not None
        return int(found[0])


def middle_turn(turns: Sequence[Turn]) -> Turn:
    def middle_of(name: str) -> float:
        return median(float(getattr(turn, name)) for turn in turns)

    rate, p50, p99, cpu = map(middle_of, ("rate", "p50", "p99", "cpu"))
    return Turn(rate, p50, p99, cpu, sum(turn.errors for turn in turns))


def errors(figures: Figures) -> int:
    return sum(
        one[side]["errors"] for found in figures.values() for one in found.values() for side in ("with", "without")
    )


def table(figures: Figures) -> str:
    lines = [
        "| optimisation | operation | with | without | ratio (lowest to highest) | CPU | errors |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in figures.items():
        for operation, one in found.items():
            cells = [name, operation, told(one["with"]), told(one["without"])]
            lowest, *_, highest = one["ratios"] if len(one["ratios"]) > 1 else one["ratios"] * 2
            cells.append(f"{one['ratio']:.2f} ({lowest:.2f} to {highest:.2f})")
            cells.append(f"{one['cpu_ratio']:.2f}")
            cells.append(str(one["with"]["errors"] + one["without"]["errors"]))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def told(turn: dict[str, Any]) -> str:
    latency = f", p50 {turn['p50']:.2f} ms, p99 {turn['p99']:.1f} ms" if turn["p50"] else ""
    return f"{turn['rate']:,.0f}/s{latency}, {turn['cpu']:.3f} ms of CPU"
