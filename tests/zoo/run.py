"""`python -m tests.zoo.run`: hunts every broken service, and writes what came of it into docs/zoo.md.

Exit status 1 when one got away. `--only NAME` tells one with the story of its counterexample, and writes nothing.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from payagg.testing.conformance.provider import ProviderAccount
from payagg.testing.conformance.run import Effort
from tests.zoo.specimens import HUNT, Catch, hunted, specimens

DOCUMENT = Path(__file__).parents[2] / "docs" / "zoo.md"
TEXT = """<!-- Written by `make zoo`, which hunted every one of them. -->

# Broken services that the harness catches

Each row is a service with one thing wrong: {by_hand} are a service written by hand from the interface alone
(`tests/zoo/by_hand.py`), {product} are the product with a store, a port or a proxy of somebody else's
(`tests/zoo/broken_product.py`). The [harness](guide/harness.md) alone looks at them, through HTTP, in at most
{histories} histories of {actions} actions from one seed. All {total} are caught; the two services without a defect
pass. *Requests* is what the search sent until it knew; *steps* is the length of the counterexample once made small.

{table}
"""


def told(caught: Catch) -> str:
    fault = caught.violation.fault if caught.violation is not None else "GOT AWAY"
    one = caught.specimen
    return f"{one.name:32} {one.machine:12} {caught.requests:6} {caught.seconds:6.2f} s  {fault:.80}"


def row(caught: Catch, steps: int) -> str:
    one = caught.specimen
    words = one.defect.strip().replace("|", "\\|")
    return f"| {words} | {one.origin} | {one.machine} | {caught.requests} | {steps} | {caught.seconds:.1f} |"


def document(rows: Sequence[tuple[Catch, int]]) -> str:
    by_hand = sum(caught.specimen.origin == "by hand" for caught, _ in rows)
    head = "| Defect | Service | Caught by | Requests | Steps | Seconds |\n|---|---|---|---|---|---|"
    return TEXT.format(
        by_hand=by_hand,
        product=len(rows) - by_hand,
        total=len(rows),
        histories=HUNT.histories,
        actions=HUNT.actions,
        table="\n".join([head, *(row(*each) for each in rows)]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.run", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="one broken service, with its story")
    parser.add_argument("--into", type=Path, default=DOCUMENT, help="the file to write")
    chosen = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    small = Effort(HUNT.histories, HUNT.actions, HUNT.seed, shrinks=True)
    provider = ProviderAccount()
    rows = []
    for specimen in specimens():
        if chosen.only not in (None, specimen.name):
            continue
        caught = hunted(specimen, provider)
        print(told(caught), flush=True)
        if caught.violation is not None:
            shrunk = hunted(specimen, provider, small).violation or caught.violation
            rows.append((caught, len(shrunk.story.steps)))
            if chosen.only is not None:
                print(shrunk)
        else:
            rows.append((caught, 0))
    provider.close()
    if chosen.only is None:
        chosen.into.write_text(document(rows), encoding="utf-8")
    return 1 if any(caught.violation is None for caught, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
