"""The generated documents are current, and the check notices when they are not."""

from pathlib import Path

import pytest

from tests.support.machine import ROOT
from tools import documents as docs
from tools.documents import main


def test_the_committed_documents_are_current() -> None:
    assert main(["--check", "--into", str(ROOT)]) == 0


def test_a_stale_or_missing_document_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "documents", lambda: {"docs/a.md": "a", "docs/b.md": "b"})
    monkeypatch.setattr(docs, "examples", lambda: "examples")
    where = ["--into", str(tmp_path), "--examples", str(tmp_path / "examples.json")]
    assert [main(["--check", *where]), main(where), main(["--check", *where])] == [1, 0, 0]
    for stale in ("docs/a.md", "examples.json"):
        (tmp_path / stale).write_text("old")
        assert [main(["--check", *where]), main(where)] == [1, 0]
