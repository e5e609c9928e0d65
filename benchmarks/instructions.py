"""Instructions of one request, of this tree and of another commit: what noise on the machine cannot hide.

`benchmarks/front.py` counts itself under valgrind; where there is none, CPU time over alternating rounds stands in.
"""

import os
import platform
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.front import REQUESTS
from lab.kit.places import a_folder
from tests.support.machine import ROOT

MOST = 1.05  # of the other commit's
REPEATS = 3  # of which each must be above it
CPU_ROUNDS = 7
Figures = dict[str, float]  # of one request, by operation


def measure(_: str, chosen: Namespace) -> str:
    """The table; ends the process with 1 where an operation stays above MOST in all repeats."""
    with a_folder("instructions") as folder:
        unit, count = _way(folder)
        if chosen.against is None:
            return _table(unit, count([ROOT]))
        sides = [ROOT, _tree(chosen.against, folder)]
        taken, above = compared(lambda: count(sides))
    table = _table(unit, taken, chosen.against)
    if above:
        raise SystemExit(f"{table}\n\nAbove {MOST:g} of {chosen.against} in {REPEATS} repeats: {', '.join(above)}.")
    return table


def compared(count: Callable[[], list[Figures]]) -> tuple[list[Figures], list[str]]:
    """The figures of both sides, ours first, and the operations that were above MOST in each of REPEATS counts. One
    count in which none is ends it."""
    taken = count()
    above = list(taken[0])
    for repeat in range(REPEATS):
        taken = count() if repeat else taken
        above = [name for name in above if taken[0][name] > MOST * taken[1][name]]
        if not above:
            break
        print(f"  above {MOST:g}: {', '.join(above)}", file=sys.stderr, flush=True)
    return taken, above


def _tree(commit: str, folder: Path) -> Path:
    """The commit's files, without a trace in the repository."""
    git = ["git", "-c", f"safe.directory={ROOT}", "archive", commit]
    (tree := folder / "tree").mkdir()
    archive = subprocess.run(git, cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], check=True, input=archive)
    return tree


def _way(folder: Path) -> tuple[str, Callable[[list[Path]], list[Figures]]]:
    if platform.machine() == "x86_64" and shutil.which("valgrind"):
        return "instructions", lambda sides: [_instructions(side, folder) for side in sides]
    return "µs of CPU", _cpu


def _instructions(tree: Path, folder: Path) -> Figures:
    for file in folder.glob("count.*"):
        file.unlink()
    # The thread that writes the log wakes up by the clock: the more often, the busier the machine.
    threads = ["--separate-threads=yes", "--instr-atstart=no", f"--callgrind-out-file={folder}/count"]
    valgrind = ["valgrind", "-q", "--tool=callgrind", *threads]
    _front(tree, "callgrind", valgrind)
    found = {}
    for file in sorted(folder.glob("count.*-01")):
        lines = file.read_text().splitlines()
        name = next(line for line in lines if line.startswith("desc: Trigger:")).split()[-1]
        total = next(line for line in reversed(lines) if line.startswith("totals:")).split()[-1]
        found[name] = int(total) / REQUESTS
    return found


def _cpu(sides: list[Path]) -> list[Figures]:
    taken: list[list[Figures]] = [[] for _ in sides]
    for _ in range(CPU_ROUNDS):
        for rounds, side in zip(taken, sides, strict=True):
            lines = [line.split() for line in _front(side, "cpu").splitlines()]
            rounds.append({name: int(ns) / 1000 / REQUESTS for name, ns in lines})
    return [{name: median(one[name] for one in rounds) for name in rounds[0]} for rounds in taken]


def _front(tree: Path, way: str, under: list[str] = []) -> str:  # noqa: B006 - it is only read
    """This tree's requests, answered by the code of `tree`."""
    paths = os.pathsep.join(str(tree / part) for part in ("src", "testing", "."))
    # Hashes, and so the collisions in dictionaries, are the same in each.
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
    command = [*under, sys.executable, str(ROOT / "benchmarks" / "front.py"), way]
    ran = subprocess.run(command, check=False, cwd=tree, env=environment, capture_output=True, text=True)
    if ran.returncode:
        why = f"{ran.stdout}{ran.stderr}".strip()
        # An older commit may have modules by other names than benchmarks/front.py imports.
        raise SystemExit(why if tree == ROOT else f"The other commit cannot be measured: {why.splitlines()[-1]}")
    return ran.stdout


def _table(unit: str, taken: list[Figures], against: str | None = None) -> str:
    if against is None:
        return "\n".join([f"| operation | {unit} |", "|---|---|", *(f"| {n} | {v:.0f} |" for n, v in taken[0].items())])
    lines = [f"| operation | {unit} | {against} | ratio |", "|---|---|---|---|"]
    own, other = taken
    lines += [f"| {name} | {own[name]:.0f} | {other[name]:.0f} | {own[name] / other[name]:.3f} |" for name in own]
    return "\n".join(lines)
