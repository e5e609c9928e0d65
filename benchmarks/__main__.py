"""`python -m benchmarks [NAME ...]`: measures what MODULES names, `peers` unless told.

An operation alternates rounds with its limit in one run, so that a machine whose speed drifts still gives a fair ratio.
Figures are medians over rounds; docs/performance.md shows them.
"""

import argparse
from contextlib import nullcontext

from benchmarks import growth, instructions, journey, peers, steps
from benchmarks.deployment import postgres
from payagg.entrypoints.process.interpreter import interpreter

MODULES = (peers, steps, journey, growth, instructions)
MEASURES = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", default=["peers"], metavar="what", help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of a round")
    parser.add_argument("--requests", type=int, default=400, help="of each of `steps` in a round")
    parser.add_argument("--lives", type=int, default=100_000, help="payments of which `growth` says what they leave")
    parser.add_argument(
        "--past", type=int, default=10_000_000, help="payments in the large database of `growth`; 0: none"
    )
    parser.add_argument(
        "--against", metavar="COMMIT", help="that `instructions` compares with: 1.05 of it is a failure"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.what) - set(MEASURES):
        parser.error(f"nothing is called {', '.join(sorted(unknown))}")
    print(interpreter())
    for name in chosen.what:
        with nullcontext("") if name == "instructions" else postgres() as server:
            print(MEASURES[name].measure(server, chosen))


if __name__ == "__main__":
    main()
