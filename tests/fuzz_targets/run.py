"""`make atheris`: each parser of what strangers send, under libFuzzer, for so many seconds each.

A found input is printed as bytes to add to the target's seeds, where `make test` tries it for ever. Exit status 1 when
a property did not hold.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz_targets.table import TARGETS
from tests.fuzz_targets.target import FuzzTarget
from tests.scorecard.figures import note

INPUT_MAX = 4096  # bytes


def hunted(target: FuzzTarget, seconds: int, folder: Path) -> tuple[int, list[bytes]]:
    """How many inputs were tried, and those for which a property does not hold: none or one, as it ends the search."""
    corpus, found = folder / "corpus", folder / "found"
    for each in (corpus, found):
        each.mkdir(parents=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    command = [sys.executable, "-m", "tests.fuzz_targets.one", target.name, f"-max_total_time={seconds}"]
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="make atheris", description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--only", default="", help="part of a target's name")
    arguments = parser.parse_args()
    if subprocess.run([sys.executable, "-c", "import atheris"], check=False, capture_output=True).returncode:
        sys.exit("atheris has wheels for Linux on x86-64 alone: here `make test` tries the seeds, and nothing more.")
    chosen = [target for target in TARGETS if arguments.only in target.name]
    tried, broken = 0, 0
    for target in chosen:
        with tempfile.TemporaryDirectory(prefix="payagg-atheris-") as folder:
            number, inputs = hunted(target, arguments.seconds, Path(folder))
        tried += number
        broken += bool(inputs)
        print(
            f"{'BROKEN' if inputs else 'holds':<7} {target.name:<18} {number:>10,} inputs: {target.holds}", flush=True
        )
        for one in inputs:
            print(f"    add to its seeds: {one!r}")
    print(f"{len(chosen) - broken} of {len(chosen)} targets hold, {tried:,} inputs in all.")
    if chosen == list(TARGETS):
        note("atheris", targets=len(chosen), broken=broken, inputs=tried, seconds=arguments.seconds)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
