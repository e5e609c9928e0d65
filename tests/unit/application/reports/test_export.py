"""Cells of a CSV: none of them is a formula to a spreadsheet, and none is changed that would not be."""

import csv
from io import StringIO
from typing import Any

import pytest

from payagg.application.reports.export import lines

FORMULAS = [
    *('=HYPERLINK("http://evil.example")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\v=1", "\ufeff=1", ";=1"),
    *("＝1", "＋1", "－1", "＠SUM(A1)"),
]
PLAIN: list[tuple[Any, str]] = [
    *((text, text) for text in ("Ọla", "a=1", "a;=1", ";", "", "'=1")),
    *((None, ""), (-150_050, "-150050"), ({"order": "=1"}, '{"order":"=1"}')),
]


@pytest.mark.rule("reports.5")
def test_every_cell_of_a_row_is_made_safe_and_read_back_whole() -> None:
    values = [*FORMULAS, *(value for value, _ in PLAIN)]
    written = lines([values, values])
    assert written.endswith(b"\r\n")
    expected = ["'" + text for text in FORMULAS] + [text for _, text in PLAIN]
    assert list(csv.reader(StringIO(written.decode(), newline=""))) == [expected, expected]
