"""`make scorecard`: takes each figure of the reliability scorecard and writes docs/scorecard.md.

What fits in a quarter of an hour runs now; the rest is read from what longer commands wrote, with their dates. Exit
status 1 when something that ran failed; what is not measured says so and fails nothing.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.scorecard.figures import FOLDER
from tests.scorecard.reading import ROOT, Figure, Run
from tests.scorecard.rows import ROWS, ScoreRow

DOCUMENT = ROOT / "docs" / "scorecard.md"
TAKEN = FOLDER / "scorecard.json"

HEAD = """<!-- Written by `make scorecard`. -->

# Scorecard

The 25 measures of reliability and security that this product is held to, each with its target, what was measured last,
by which command and when. `make scorecard` runs what fits in a quarter of an hour on two cores, and reads the rest from
what longer commands wrote. {measured} of {all} are measured in whole; {partly} in part; {missing} not at all, and say
why. A figure says what was done, which may be less than its target asks for.

| # | Measure | Target | Figure | Command | Date |
| --- | --- | --- | --- | --- | --- |
"""


def line(row: ScoreRow, figures: list[Figure]) -> str:
    cells = (
        str(row.number),
        row.measure,
        row.target,
        "<br>".join(figure.text for figure in figures),
        "<br>".join(reading.command for reading in row.readings),
        "<br>".join(figure.date or "never" for figure in figures),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def document(taken: dict[int, list[Figure]]) -> Iterator[str]:
    lacking = [sum(figure.text.startswith("not measured") for figure in figures) for figures in taken.values()]
    none = sum(lack == len(figures) for lack, figures in zip(lacking, taken.values(), strict=True))
    some = sum(lack > 0 for lack in lacking) - none
    yield HEAD.format(all=len(taken), missing=none, partly=some, measured=len(taken) - none - some)
    for row in ROWS:
        yield line(row, taken[row.number])


def known() -> dict[str, Figure]:
    """What commands gave the last time."""
    return {key: Figure(*kept) for key, kept in json.loads(TAKEN.read_text()).items()} if TAKEN.exists() else {}


def run(only: set[int], *, resume: bool) -> int:
    """Writes after each figure: what was taken stays when the run is cut short."""
    before, today, failed = known(), datetime.now(UTC).date().isoformat(), 0
    taken: dict[str, Figure] = {}
    left = {row.number for row in ROWS if not only or row.number in only}
    for row in ROWS:
        for reading in row.readings:
            if not isinstance(reading, Run) or row.number not in left:
                continue
            last = before.get(reading.command)
            if resume and last is not None and last.date == today and not last.text.startswith("FAILED"):
                continue
            began = time.monotonic()
            figure = taken[reading.command] = reading.read()
            failed += figure.text.startswith("FAILED")
            print(f"{row.number:>2}  {time.monotonic() - began:5.0f} s  {figure.text}", flush=True)
            write(taken)
    write(taken)
    return 1 if failed else 0


def write(now: dict[str, Figure]) -> None:
    """The document, and what commands gave, for the next run; rows that are gone are forgotten."""
    ran = {**known(), **now}  # another run may have written meanwhile
    taken: dict[int, list[Figure]] = {}
    kept: dict[str, Figure] = {}
    for row in ROWS:
        taken[row.number] = []
        for reading in row.readings:
            if isinstance(reading, Run):
                figure = ran.get(reading.command, Figure("not measured: it has not been run yet", ""))
                kept[reading.command] = figure
            else:
                figure = reading.read()
            taken[row.number].append(figure)
    FOLDER.mkdir(exist_ok=True)
    TAKEN.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    DOCUMENT.write_text("".join(document(taken)), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make scorecard", description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of rows; the others stay as they were")
    parser.add_argument("--resume", action="store_true", help="keep what was taken today")
    arguments = parser.parse_args()
    return run(set(arguments.only), resume=arguments.resume)


if __name__ == "__main__":
    sys.exit(main())
