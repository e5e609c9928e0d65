"""The table of the payer's page is written between its markers, and nowhere else."""

from pathlib import Path

import pytest

from benchmarks.first_paint import BEGIN, DOCUMENT, END, Opening, table
from benchmarks.harness import write_between

ROUNDS = [{"the link": Opening(1300, 2900, 6, 16_000)}, {"the link": Opening(1200, 3000, 6, 15_000)}]


def test_the_table_goes_between_the_markers(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_between(table(ROUNDS), document, (BEGIN, END))
    assert document.read_text() == f"before\n{BEGIN}\n{table(ROUNDS)}\n{END}\nafter\n"
    assert "| the link | 1.25 s | 2.95 s | 6 | 15.6 KB |" in document.read_text()


def test_a_document_without_markers_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("nothing\n")
    with pytest.raises(SystemExit):
        write_between("table", document, (BEGIN, END))
    assert document.read_text() == "nothing\n"


def test_the_committed_document_has_the_table() -> None:
    _, _, rest = DOCUMENT.read_text("utf-8").partition(BEGIN)
    assert "| the link, nothing in the cache |" in rest.partition(END)[0]
