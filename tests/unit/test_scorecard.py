"""The scorecard has its 25 measures, each with a command and a date, and says plainly what nobody measures."""

import re

import pytest

from tests.scorecard.reading import ROOT, Noted, Run, Written, _words
from tests.scorecard.rows import ROWS
from tests.scorecard.run import DOCUMENT, line
from tests.soak.run import PARTS, figures

LINES = [text for text in DOCUMENT.read_text("utf-8").splitlines() if re.match(r"\| [0-9]+ \|", text)]
RUNS = [reading for row in ROWS for reading in row.readings if isinstance(reading, Run)]
CELL = re.compile(r"(?<!\\)\|")


def cells(text: str) -> list[str]:
    return [cell.strip() for cell in CELL.split(text)[1:-1]]


def test_the_document_has_every_row_and_no_other() -> None:
    assert [row.number for row in ROWS] == list(range(1, 26))
    told = [(cells(text)[0], *cells(text)[1:3], cells(text)[4]) for text in LINES]
    wanted = [cells(line(row, [])) for row in ROWS]
    assert told == [(one[0], *one[1:3], one[4]) for one in wanted]


@pytest.mark.parametrize("text", LINES, ids=lambda text: cells(text)[0])
def test_every_figure_has_its_date_or_says_that_it_is_not_measured(text: str) -> None:
    *_, figures, commands, dates = (cell.split("<br>") for cell in cells(text))
    assert len(figures) == len(commands) == len(dates)
    for figure, date in zip(figures, dates, strict=True):
        assert figure
        is_missing = figure.startswith("not measured: ")
        assert is_missing or re.fullmatch(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", date), figure
        assert "FAILED" not in figure


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.module)
def test_what_a_command_names_is_there(run: Run) -> None:
    module, *arguments = _words(run.module)
    if module != "pytest":
        assert list((ROOT / "src").glob(module.replace(".", "/") + "*")) + list(
            ROOT.glob(module.replace(".", "/") + "*")
        )
    assert [one for one in arguments if one.startswith("tests/") and not (ROOT / one).exists()] == []
    fields = set(re.findall(r"{(\w+)}", run.words))
    assert fields <= set(re.compile(run.pattern).groupindex)


def test_a_document_that_a_row_reads_says_what_its_pattern_wants() -> None:
    written = [reading for row in ROWS for reading in row.readings if isinstance(reading, Written)]
    there = [reading for reading in written if (ROOT / reading.document).exists()]
    assert len(there) >= 6
    assert [one.document for one in there if one.read().text.startswith("not measured")] == []


def test_a_figure_of_a_command_that_fails_is_never_made_up() -> None:
    ran = Run("pytest -q").figure
    assert ran(0, "..\n5 passed in 1 s\n") == "5 tests pass"
    assert ran(1, "1 failed, 5 passed in 1 s") == "FAILED: 1 failed, 5 passed in 1 s"
    assert ran(0, "nothing ran") == "FAILED: nothing ran"
    assert ran(0, "3 skipped in 1 s") == "not measured: 3 skipped in 1 s"
    assert ran(3, "not installed") == "not measured: not installed"
    assert Noted("make nothing", "nothing", "{x}").read().text.startswith("not measured")


def test_what_a_long_run_printed_is_added_up() -> None:
    told = "seed 7: 31 payments, 9 paid unseen\nseed 8: 32 payments, 3 paid unseen\n4 passed in 9 s"
    assert figures(PARTS["kills"], told) == {"rounds": 2, "payments": 63}
    assert figures(PARTS["pairs"], told) == {"rounds": 1, "passed": 4}
    assert figures(PARTS["faults"], "199 of 200 faults hold") == {"rounds": 1, "holds": 199, "drawn": 200}
    assert figures(PARTS["faults"], "nothing") == {"rounds": 0}


def test_what_a_row_says_of_a_long_run_is_noted_by_it() -> None:
    for row in ROWS:
        for reading in row.readings:
            if isinstance(reading, Noted) and reading.name.startswith("soak-"):
                part = PARTS[reading.name.removeprefix("soak-")]
                fields = set(re.findall(r"{(\w+)}", reading.words))
                assert fields <= {"times", "rounds", *re.compile(part.pattern).groupindex}


def test_a_command_that_never_ends_is_ended() -> None:
    assert Run("timeit -n 1 'import time; time.sleep(60)'", seconds=0.5).read().text == "FAILED: not over after 0 s"
