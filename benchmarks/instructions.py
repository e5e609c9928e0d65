"""Instructions of one request, of this tree and of another commit: what noise on the machine cannot hide.

`benchmarks/front.py` counts itself under valgrind, on x86-64 alone.
"""

import os
import platform
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from benchmarks.front import REQUESTS
from lab.kit.places import a_folder
from tests.support.machine import ROOT, program

MOST = 1.05  # of the other commit's
REPEATS = 3  # of which each must be above it
Figures = dict[str, float]  # of one request, by operation


def measure(_: str, chosen: Namespace) -> str:
    """The table; ends the process with 1 where an operation stays above MOST in all repeats."""
    if platform.machine() != "x86_64":
        raise SystemExit("Instructions are counted on x86-64 alone.")
    with a_folder("instructions") as folder:
        if chosen.against is None:
            return _table([_counted(ROOT, folder)])
        sides = [ROOT, _tree(chosen.against, folder)]
        taken, above = compared(lambda: [_counted(side, folder) for side in sides])
    table = _table(taken, chosen.against)
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


def _counted(tree: Path, folder: Path) -> Figures:
    """This tree's requests, answered by the code of `tree`."""
    for file in folder.glob("count.*"):
        file.unlink()
    paths = os.pathsep.join(str(tree / part) for part in ("src", "testing", "."))
    # Hashes, and so the collisions in dictionaries, are the same in each.
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
    # The thread that writes the log wakes up by the clock: the more often, the busier the machine.
    command = [program("valgrind"), "-q", "--tool=callgrind", "--separate-threads=yes", "--instr-atstart=no"]
    command += [f"--callgrind-out-file={folder}/count", sys.executable, str(ROOT / "benchmarks" / "front.py")]
    ran = subprocess.run(command, check=False, cwd=tree, env=environment, capture_output=True, text=True)
    if ran.returncode:
        why = f"{ran.stdout}{ran.stderr}".strip()
        # An older commit may have modules by other names than benchmarks/front.py imports.
        raise SystemExit(why if tree == ROOT else f"The other commit cannot be measured: {why.splitlines()[-1]}")
    found = {}
    for file in sorted(folder.glob("count.*-01")):
        lines = file.read_text().splitlines()
        name = next(line for line in lines if line.startswith("desc: Trigger:")).split()[-1]
        total = next(line for line in reversed(lines) if line.startswith("totals:")).split()[-1]
        found[name] = int(total) / REQUESTS
    return found


def _table(taken: list[Figures], against: str | None = None) -> str:
    if against is None:
        lines = ["| operation | instructions |", "|---|---|"]
        return "\n".join([*lines, *(f"| {name} | {value:.0f} |" for name, value in taken[0].items())])
    lines = [f"| operation | instructions | {against} | ratio |", "|---|---|---|---|"]
    own, other = taken
    lines += [f"| {name} | {own[name]:.0f} | {other[name]:.0f} | {own[name] / other[name]:.3f} |" for name in own]
    return "\n".join(lines)
