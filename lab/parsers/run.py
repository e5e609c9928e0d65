"""Each parser of what strangers send, under libFuzzer, for so many seconds each.

A found input is printed as bytes to add to the target's seeds, where `make test` tries it for ever.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.parsers import bodies, urls
from lab.parsers.target import FuzzTarget

TARGETS = (*urls.TARGETS, *bodies.TARGETS)


INPUT_MAX = 4096  # bytes
SECONDS = 30


def hunted(target: FuzzTarget, seconds: int, folder: Path) -> tuple[int, list[bytes]]:
    """How many inputs were tried, and those for which a property does not hold: none or one, as it ends the search."""
    corpus, found = folder / "corpus", folder / "found"
    for each in (corpus, found):
        each.mkdir(parents=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    command = [sys.executable, "-m", "lab.parsers.one", target.name, f"-max_total_time={seconds}"]
    command += [f"-max_len={INPUT_MAX}", f"-artifact_prefix={found}/", "-print_final_stats=1", str(corpus)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, env=environ, check=False, capture_output=True)
    told = ran.stderr.decode("utf-8", "replace")
    tried = re.search(r"stat::number_of_executed_units: ([0-9]+)", told)
    inputs = [one.read_bytes() for one in sorted(found.iterdir())]
    if tried is None or (ran.returncode and not inputs):
        sys.exit(f"{target.name} did not run:\n{told[-2000:]}")
    if inputs:
        print(told[-4000:])
    return int(tried[1]), inputs


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab parsers", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each target")
    parser.add_argument("--only", default="", help="part of a target's name")
    chosen = parser.parse_args(arguments)
    if find_spec("atheris") is None:
        sys.exit("atheris has wheels for Linux on x86-64 alone: here `make test` tries the seeds, and nothing more.")
    tally, tried = RunSummary("parsers", arguments), 0
    for target in TARGETS:
        if chosen.only in target.name:
            with a_folder("parsers") as folder:
                number, found = hunted(target, chosen.seconds, folder)
            tried += number
            wrong = [f"add to its seeds: {one!r}" for one in found]
            tally.line(f"{target.name:<18} {number:>10,} inputs: {target.holds}", wrong)
    return tally.end(whole=not chosen.only and chosen.seconds >= SECONDS, inputs=tried)
