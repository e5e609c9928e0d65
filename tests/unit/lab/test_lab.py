"""The laboratory's figures."""

from pathlib import Path

import pytest

from lab.kit import figures


def test_only_a_whole_run_that_holds_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (page := tmp_path / "page").write_text(figures.PAGE.read_text())
    monkeypatch.setattr(figures, "FILE", tmp_path / "figures")
    monkeypatch.setattr(figures, "PAGE", page)
    for whole, wrong in ((True, ["lost"]), (False, []), (True, [])):
        assert not figures.FILE.exists()
        tally = figures.RunSummary("crashes", [])
        tally.line("a crash", wrong)
        assert tally.end(whole=whole) == len(wrong)
    assert figures.figures()["crashes"]["holds"] == 1
