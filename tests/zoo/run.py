"""`python -m tests.zoo.run`: hunts every broken service, and writes what came of it into docs/zoo.md.

Exit status 1 when one got away. `--only NAME` tells one with the story of its counterexample, and writes nothing.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from payagg.testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg.testing.conformance.receiver import cases, check_receiver
from payagg.testing.conformance.run import Effort
from tests.zoo.receivers import BROKEN_RECEIVERS, NEW_SECRET, SECRET, receiving
from tests.zoo.specimens import HUNT, Catch, hunted, specimens

DOCUMENT = Path(__file__).parents[2] / "docs" / "zoo.md"
TEXT = """<!-- Written by `make zoo`, which hunted every one of them. -->

# Broken services that the harness catches

Each row is a service with one thing wrong: {by_hand} are a service written by hand from the interface alone
(`tests/zoo/by_hand.py`), {product} are the product with a store, a port or a proxy of somebody else's
(`tests/zoo/broken_product.py`), {rules} are the domain with one rule of somebody else's, without any HTTP
(`tests/zoo/broken_rules.py`). The [harness](guide/harness.md) alone looks at them, in at most {histories} histories of
{actions} actions from one seed. All {total} are caught; without a defect the two services and the domain pass.
*Requests* is what the search sent until it knew, *steps* the length of the history that showed it, before it is made
small: `make zoo ARGS="--only TriesOnce"` does that, and tells the story.

{table}

## Broken webhook handlers

The receiver kit (`payagg-testing receiver`) against handlers as merchants write them (`tests/zoo/receivers.py`); the
good one among them passes all {cases} cases.

{receivers}
"""


def told(caught: Catch) -> str:
    fault = caught.violation.fault if caught.violation is not None else "GOT AWAY"
    one = caught.specimen
    return f"{one.name:32} {one.machine:12} {caught.requests:6} {caught.seconds:6.2f} s  {fault:.80}"


def row(caught: Catch) -> str:
    one = caught.specimen
    words = one.defect.strip().replace("|", "\\|")
    if caught.violation is None:
        words += " GOT AWAY"
    steps = len(caught.violation.story.steps) if caught.violation is not None else 0
    return f"| {words} | {one.origin} | {one.machine} | {caught.requests} | {steps} | {caught.seconds:.1f} |"


def receiver_rows() -> list[str]:
    rows = []
    for broken in BROKEN_RECEIVERS:
        receiver, began = broken(), time.perf_counter()
        with receiving(receiver) as url:
            findings = check_receiver(
                url, SECRET, new_secret=NEW_SECRET, count=partial(getattr, receiver, "handled"), settle_seconds=0.2
            )
        wrong = [finding.case for finding in findings if finding.fault]
        names = wrong[0] + (f", and {len(wrong) - 1} more" if wrong[1:] else "") if wrong else "GOT AWAY"
        rows.append(f"| {broken.__doc__} | {names} | {time.perf_counter() - began:.1f} |")
        print(rows[-1], flush=True)
    return rows


def document(rows: Sequence[Catch], receivers: Sequence[str]) -> str:
    origins = Counter(caught.specimen.origin for caught in rows)
    head = "| Defect | Service | Caught by | Requests | Steps | Seconds |\n|---|---|---|---|---|---|"
    return TEXT.format(
        by_hand=origins["by hand"],
        product=origins["product"],
        rules=origins["rules"],
        total=len(rows),
        histories=HUNT.histories,
        actions=HUNT.actions,
        table="\n".join([head, *map(row, rows)]),
        cases=len(list(cases(NEW_SECRET))),
        receivers="\n".join(["| Defect | Caught by | Seconds |\n|---|---|---|", *receivers]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.run", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="one broken service, with its story")
    parser.add_argument("--into", type=Path, default=DOCUMENT, help="the file to write")
    chosen = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    small = Effort(HUNT.histories, HUNT.actions, HUNT.seed, shrinks=True)
    accounts = ProviderAccount(), ProviderBAccount()
    rows = []
    for specimen in specimens():
        if chosen.only not in (None, specimen.name):
            continue
        caught = hunted(specimen, accounts, HUNT if chosen.only is None else small)
        print(told(caught), flush=True)
        rows.append(caught)
        if chosen.only is not None:
            print(caught.violation)
    for account in accounts:
        account.close()
    if chosen.only is None:
        text = document(rows, receiver_rows())
        chosen.into.write_text(text, encoding="utf-8")
        return 1 if "GOT AWAY" in text else 0
    return 1 if any(caught.violation is None for caught in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
