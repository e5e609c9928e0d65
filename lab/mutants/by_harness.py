"""`make lab ARGS="mutants --by harness"`: of the mutants of what decides about a payment, how many the harness alone kills,
by requests to the application over the in-memory store, and in how many. None is drawn where no request comes, see reach.py.

A machine that finds anything kills: what breaks the interface, or what differs from payagg where that is silent. So does
a mutant that stops the application. UNSEEN has the mutants that no request can tell from the product by a sentence of
the interface, and what the harness kills may not stand there; of the others KILLED must be killed.
`python -m lab.mutants.by_harness` is what runs in a copy with a mutant in it: its last line is the number of requests,
its exit status one of FOUND."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from statistics import median
from typing import Any

from payagg_testing import Effort, run_machine

from lab.defects.detect import product
from lab.kit.figures import RunSummary
from lab.kit.product_copy import Copy, a_copy
from lab.mutants.unseen import UNSEEN

PAYMENTS = ("payments", "checkout", "settlement", "verification", "provider_calls", "provider_events")
DOMAIN = ("payment", "attempt", "machine", "report", "gateway", "simulator")
# What decides about a payment while somebody asks over HTTP: no request makes the worker check a status.
JUDGED = (
    *(f"application/payments/{name}.py" for name in PAYMENTS),
    "application/gateways/payment_options.py",
    *(f"domain/{name}.py" for name in DOMAIN),
)
MACHINES = ("payments", "settlement", "idempotency", "settlement-b", "businesses", "gateways", "webhooks", "logos")
EFFORT = Effort(histories=20, actions=30, seed=1, shrinks=False)
FOUND = {0: "breaks the interface", 3: "survives", 4: "differs from payagg"}
KILLED = 0.9
SECONDS_MAX = 300.0  # an end for an application that a mutant stops


def hunt() -> int:
    requests, found = 0, "survives"
    with product() as target:
        for machine in MACHINES:
            verdict = run_machine(machine, target, EFFORT)
            requests += verdict.requests
            if verdict.violation is not None:
                found = "breaks the interface" if verdict.breaks else "differs from payagg"
                break
        print(verdict.words, requests, sep="\n")
        return next(status for status, words in FOUND.items() if words == found)


def hunted(copy: Copy) -> tuple[str, int]:
    """What the harness finds in the copy, and after how many requests; 0 where it could send none."""
    try:
        status, said = copy.python("-m", "lab.mutants.by_harness", timeout=SECONDS_MAX)
    except TimeoutError:
        return "never ends", 0
    last = said.strip().rpartition("\n")[2]
    return FOUND.get(status, "stops the application"), int(last) if last.isdigit() else 0


def survey(arguments: Sequence[str], drawn: Callable[[Copy, str], Sequence[Any]], only: str, *, is_usual: bool) -> int:
    """`drawn` gives the mutants of a file. The exit status."""
    tally, kills, tried, unseen = RunSummary("mutants", arguments), list[int](), 0, 0
    with a_copy() as copy, a_copy() as other, ThreadPoolExecutor(2) as pool:
        free = SimpleQueue[Copy]()
        for each in (copy, other):
            free.put(each)

        def hunted_in_one(one: Any) -> tuple[str, int]:
            taken = free.get()
            whole = (taken.source / one.file).read_text()
            try:
                taken.write(one.file, one.text)
                return hunted(taken)
            finally:
                taken.write(one.file, whole)
                free.put(taken)

        found, requests = hunted(copy)
        sound = [f"it {found}"] * (found != "survives")
        tally.line(f"the harness finds nothing without a mutant, in {requests} requests", sound)
        for file in [one for one in JUDGED if only in one]:
            mutants, counts, wrong = drawn(copy, file), Counter[str](), list[str]()
            for one, (found, requests) in zip(mutants, pool.map(hunted_in_one, mutants), strict=True):
                counts[found] += 1
                why = UNSEEN.get(file, {}).get((one.before, one.after))
                unseen += why is not None
                if found != "survives":
                    kills.append(requests)
                    wrong += [f"line {one.line}: {one.after} can be told, and is explained"] * (why is not None)
                    continue
                print(f"        {file}:{one.line} survives: {why or 'not explained'}", flush=True)
                print(f"    - {one.before}\n    + {one.after}", flush=True)
            tried += len(mutants)
            tally.line(f"{file}: {', '.join(f'{count} {words}' for words, count in counts.items())}", wrong)
    told = tried - unseen
    tally.line(
        f"{len(kills)} killed, of {told} that a request can tell, of {tried} drawn",
        ["too few"] * (len(kills) < KILLED * told),
    )
    return tally.end(
        whole=is_usual, name="mutants by harness", killed=len(kills), told=told, mutants=tried,
        median=round(median(kills or [0])), most=max(kills, default=0),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(hunt())
