"""How a part tells what it finds: a line for each thing tried, one line at the end, and the figures of the last whole
runs, in lab/figures.json and the table of docs/proof.md."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.machine import ROOT

FILE = ROOT / "lab" / "figures.json"
PAGE = ROOT / "docs" / "proof.md"
BEGIN, END = "<!-- figures: written by `make lab` from lab/figures.json -->", "<!-- figures: end -->"
FAILOVER = "{holds} of {all} hold; writes stop for {frozen} s when the leader freezes, {switchover} s in a switchover"
# What a run of that name is told as.
WORDS = {
    "cells": "{journeys:,} journeys; {unavailable} requests refused, all by a killed cell or HAProxy",
    "crashes": "{holds} of {all} hold",
    "defects": "{holds} of {all} caught",
    "failover": FAILOVER,
    "failover of two releases": f"beside the previous release {FAILOVER}",
    "faults": "{holds} of {all} hold",
    "faults drawn": "{holds} of {all} hold",
    "fuzz": "{cases:,} cases, no failure",
    "mutants": "{killed} of {mutants} killed, the others explained",
    "overload": "ten times the {capacity:,} orders a second of one process: it serves {meanwhile} of its capacity; none "
    "of {acknowledged:,} lost",
    "parsers": "{holds} of {all} hold in {inputs:,} inputs",
    "races": "105 pairs and crowds of 64 hold in 100 times the rounds of the day",
    "simulation": "{broken} of {histories:,} histories broken, {never} goals missed",
    "soak hardships": "{holds} of {all} hold",
    "soak steady": "{rate}/s for half an hour: {faults} of {requests:,} failed, memory {growth}",
    "upgrade faults": "{holds} of {all} hold: the previous release dies, this one goes on",
    "upgrade": "none of {paid:,} payments lost, none of {requests:,} requests failed; {tests} older tests pass on the new "
    "schema",
}


def figures() -> dict[str, dict[str, Any]]:
    return dict(json.loads(FILE.read_text("utf-8"))) if FILE.exists() else {}


def note(name: str, part: str, arguments: Sequence[str], **found: Any) -> None:
    """What the whole run `name` of a part found today; both files are committed."""
    words = " ".join([part, *arguments])
    whole = {"date": datetime.now(UTC).date().isoformat(), "command": f'make lab ARGS="{words}"', **found}
    FILE.write_text(json.dumps(figures() | {name: whole}, indent=1, sort_keys=True) + "\n", "utf-8")
    PAGE.write_text(page(), "utf-8")


def page() -> str:
    """docs/proof.md with the figures as they are."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{PAGE.name} lacks the marks of the table"
    rows = [f"| {name} | {WORDS[name].format(**one)} | {one['date']} |" for name, one in sorted(figures().items())]
    table = "\n".join(["| Run | Found | Date |", "| --- | --- | --- |", *rows])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


@dataclass
class RunSummary:
    """`part` and `arguments` are what was typed."""

    part: str
    arguments: Sequence[str]
    tried: int = 0
    broken: int = 0
    began: float = field(default_factory=time.monotonic)

    def line(self, text: str, wrong: Sequence[str] = ()) -> None:
        """One thing that was tried, and what of it does not hold."""
        self.tried += 1
        self.broken += bool(wrong)
        print(f"{'BROKEN' if wrong else 'holds '}  {text}", *wrong[:20], sep="\n        ", flush=True)

    @property
    def holds(self) -> int:
        return self.tried - self.broken

    def end(self, *, whole: bool, name: str = "", **figures: Any) -> int:
        """The exit status. The figures of a `whole` run that holds are noted under `name`, or else under the part's."""
        minutes = round((time.monotonic() - self.began) / 60, 1)
        told = "".join(f", {key} {value}" for key, value in figures.items() if not isinstance(value, dict))
        print(f"{self.part}: {self.holds} of {self.tried} hold, in {minutes} minutes{told}.", flush=True)
        is_broken = bool(self.broken or not self.tried)
        if whole and not is_broken:
            counts = {"holds": self.holds, "all": self.tried, "minutes": minutes}
            note(name or self.part, self.part, self.arguments, **counts, **figures)
        return int(is_broken)
