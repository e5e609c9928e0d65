"""`make lab ARGS="defects"`: plants each defect of the table in a copy of the product, and sees it noticed.

The table stands in the TOML files beside this one. A name says what is wrong. A key that ends in `.py` or `.sql` is a
file as `place` takes it, with old text, which stands there once, and new text, in turn; the others are detectors. `--only`
chooses by a part of the name or of what must notice it, `--detector` by its kind. Exit status 1 when a defect is
missed, or a test that must fail does so without any.
"""

import argparse
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lab.kit.figures import RunSummary
from lab.kit.product_copy import Copy, a_copy, place
from tests.support.extensions import is_removed

# What each is given: a test as pytest names it below tests/, an invariant, machines of the harness, over the application
# on the in-memory store.
DETECTORS = ("test", "simulation", "harness")


class EditDoesNotFit(Exception):
    """The product no longer has the text that a defect replaces, or has it more than once."""


@dataclass(frozen=True)
class Defect:
    """`edits`: for each file as `place` takes it, old and new texts in turn. `detectors`: what each must notice it by."""

    name: str
    edits: Mapping[str, list[str]]
    detectors: Mapping[str, list[str]]

    @classmethod
    def read(cls, name: str, entry: Mapping[str, Any]) -> "Defect":
        noticed = {kind: entry[kind] for kind in DETECTORS if kind in entry}
        detectors = {kind: by if isinstance(by, list) else [by] for kind, by in noticed.items()}
        return cls(name, {file: texts for file, texts in entry.items() if file not in DETECTORS}, detectors)

    def planted(self, root: Path) -> dict[str, str]:
        """The texts of the files with the defect in them. Raises EditDoesNotFit."""
        planted = {}
        for file, edits in self.edits.items():
            text = place(root, file).read_text()
            for old, new in zip(edits[::2], edits[1::2], strict=True):
                if text.count(old) != 1:
                    raise EditDoesNotFit(f"{self.name}: {file} has {text.count(old)} times: {old}")
                text = text.replace(old, new)
            planted[file] = text
        return planted


def _read() -> Iterator[Defect]:
    for area in sorted(Path(__file__).parent.glob("*.toml")):
        for name, entry in tomllib.loads(area.read_text()).items():
            defect = Defect.read(name, entry)
            if not any(map(is_removed, (*defect.edits, *defect.detectors.get("test", ())))):
                yield defect


DEFECTS = tuple(_read())


SECONDS_MAX = 900.0  # an end for a detector that a defect stops, never an expectation
# A defect that only breaks the program would be caught by anything: a test must see what it does.
BROKEN = re.compile(r"(NameError|ImportError|ModuleNotFoundError|SyntaxError|AttributeError|UnboundLocalError)\b")


def noticed(copy: Copy, kind: str, what: str) -> tuple[bool, str]:
    """Whether the detector notices a defect that is in the copy, and its words."""
    try:
        if kind != "test":
            status, said = copy.python("-m", "lab.defects.detect", kind, what, timeout=SECONDS_MAX)
            last = said.strip().rpartition("\n")[2]
            return status == 0, last
        ran = copy.run([what], "--tb=short", timeout=SECONDS_MAX)
    except TimeoutError:
        return False, "it hangs"
    if not ran.failures:
        return False, ran.output.strip().rpartition("\n")[2]
    broken = [failure for failure in ran.failures if BROKEN.match(failure)]
    return not broken, f"it breaks the program: {broken[0]}" if broken else ran.failures[0]


def tried(copy: Copy, defect: Defect, kinds: Sequence[str]) -> Iterator[tuple[str, bool, str]]:
    """Plants the defect, and tells of each detector: its kind, whether it noticed, and its words."""
    with copy.planted(defect.planted(copy.folder)):
        for kind in kinds:
            for what in defect.detectors.get(kind, ()):
                yield kind, *noticed(copy, kind, what)


def all_tried(
    chosen: Sequence[Defect], kinds: Sequence[str], jobs: int
) -> Iterator[tuple[Defect, list[tuple[str, bool, str]]]]:
    """As `tried`, so many at once, each in a copy of its own."""
    copies = SimpleQueue[Copy]()

    def one(defect: Defect) -> list[tuple[str, bool, str]]:
        copy = copies.get()
        try:
            return list(tried(copy, defect, kinds))
        finally:
            copies.put(copy)

    with ExitStack() as stack:
        for _ in range(jobs):
            copies.put(stack.enter_context(a_copy()))
        with ThreadPoolExecutor(jobs) as pool:
            yield from zip(chosen, pool.map(one, chosen), strict=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab defects", description=__doc__)
    parser.add_argument("--only", default="", help="part of a defect's name, or of what must notice it")
    parser.add_argument("--detector", action="append", choices=DETECTORS, help="the others are left out")
    parser.add_argument("--jobs", type=int, default=1, help="defects at once")
    options = parser.parse_args(arguments)
    kinds = options.detector or DETECTORS
    chosen = [
        one
        for one in DEFECTS
        if any(
            options.only in words for words in (one.name, *(w for kind in kinds for w in one.detectors.get(kind, ())))
        )
    ]
    tally = RunSummary("defects", arguments)
    tests = sorted({test for one in chosen for test in one.detectors.get("test", ())}) if "test" in kinds else []
    if tests:
        with a_copy() as copy:
            sound = copy.run(tests, "--tb=short")
            if sound.failures or sound.others or not sound.passed:
                print(f"{sound.output}\nwithout a defect a test fails")
                return 1
    for defect, found in all_tried(chosen, kinds, options.jobs):
        for kind, is_caught, words in found:
            tally.line(f"{kind:10} {defect.name}: {words:.100}", [] if is_caught else ["missed"])
    return tally.end(whole=not (options.only or options.detector))
