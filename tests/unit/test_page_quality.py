"""Lighthouse's scores stand in the document for every page that is measured, each at its target."""

import re

from benchmarks.first_paint import DOCUMENT
from benchmarks.page_quality import ADMIN, BEGIN, DOCS, END, MERCHANT, TARGET, table


def test_the_table_has_a_row_for_each_page_and_seo_where_it_was_asked_for() -> None:
    found = {"checkout": {"performance": 99, "accessibility": 100, "best-practices": 100}, "docs": {"seo": 91}}
    assert "| checkout | 99 | 100 | 100 |  |" in table(found)
    assert "| docs |  |  |  | 91 |" in table(found)


def test_the_committed_document_has_every_page_at_its_target() -> None:
    _, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    rows = re.findall(r"^\| ([a-zA-Z: -]+) \| ([0-9 |]+) \|$", rest.partition(END)[0], re.MULTILINE)
    names = {"checkout", "console: sign-in", *MERCHANT, *ADMIN, *DOCS}
    assert {name for name, _ in rows} == names
    assert all(int(score) >= TARGET for _, scores in rows for score in re.findall(r"[0-9]+", scores))
