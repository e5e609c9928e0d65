"""`make lab ARGS="mutants --by harness"`: of the mutants of what decides about a payment, how many the harness alone kills,
by requests to the application over the in-memory store, and in how many.

A machine that finds anything kills, and so does a mutant that stops the application. `python -m lab.mutants.by_harness` is
what runs in a copy with a mutant in it: its last line is the number of requests, its exit status SURVIVED where nothing is
found."""

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from payagg_testing import Effort, run_machine

from lab.defects.detect import product
from lab.kit.figures import RunSummary
from lab.kit.product_copy import Copy, a_copy
from lab.mutants.modules import MODULES

DECIDING = tuple(f"domain/{name}.py" for name in ("payment", "attempt", "machine", "report"))
MACHINES = ("payments", "settlement", "idempotency", "settlement-b")
EFFORT = Effort(histories=10, actions=30, seed=1, shrinks=False)
SURVIVED = 3
SECONDS_MAX = 240.0  # an end for an application that a mutant stops


def hunt() -> int:
    requests = 0
    with product() as target:
        for machine in MACHINES:
            verdict = run_machine(machine, target, EFFORT)
            requests += verdict.requests
            if verdict.violation is not None:
                break
        print(verdict.words, requests, sep="\n")
        return 0 if verdict.violation is not None else SURVIVED


def hunted(copy: Copy) -> tuple[bool, int]:
    """Whether the harness finds nothing in the copy, and after how many requests; 0 where it could send none."""
    try:
        status, said = copy.python("-m", "lab.mutants.by_harness", timeout=SECONDS_MAX)
    except TimeoutError:
        return False, 0
    last = said.strip().rpartition("\n")[2]
    return status == SURVIVED, int(last) if last.isdigit() else 0


def survey(arguments: Sequence[str], drawn: Callable[[Copy, str], Sequence[Any]], only: str, *, is_usual: bool) -> int:
    """`drawn` gives the mutants of a file. The exit status."""
    tally, kills, tried = RunSummary("mutants", arguments), list[int](), 0
    with a_copy() as copy:
        is_sound, requests = hunted(copy)
        tally.line(f"the harness finds nothing without a mutant, in {requests} requests", ["it does"] * (not is_sound))
        for file in [one for one in MODULES if only in one and (one in DECIDING or "/payments/" in one)]:
            whole, mutants = (copy.source / file).read_text(), drawn(copy, file)
            found = []
            for one in mutants:
                copy.write(file, one.text)
                survives, requests = hunted(copy)
                found += [] if survives else [requests]
                if survives:
                    print(f"        {file}:{one.line} survives\n    - {one.before}\n    + {one.after}", flush=True)
            copy.write(file, whole)
            kills, tried = kills + found, tried + len(mutants)
            tally.line(f"{file}: {len(found)} of {len(mutants)} killed, in {found} requests")
    return tally.end(
        whole=is_usual, name="mutants by harness", killed=len(kills), mutants=tried, median=round(median(kills or [0])),
        most=max(kills, default=0),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(hunt())
