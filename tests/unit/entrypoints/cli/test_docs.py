"""The generated documents are current, and the check notices when they are not."""

from pathlib import Path

import pytest

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.cli import docs
from payagg.entrypoints.cli.docs import MACHINES, errors, main, states
from payagg.entrypoints.http.api.openapi.remedies import REMEDIES
from payagg.entrypoints.http.server.errors import HTTP_STATUS
from tests.support.machine import ROOT


def test_the_committed_documents_are_current() -> None:
    assert main(["--check", "--into", str(ROOT)]) == 0


def test_a_stale_or_missing_document_is_named_and_checking_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "documents", lambda: {"docs/a.md": "a", "docs/b.md": "b"})
    monkeypatch.setattr(docs, "examples", lambda: "examples")
    where = ["--into", str(tmp_path), "--examples", str(tmp_path / "examples.json")]
    assert main(["--check", *where]) == 1
    assert list(tmp_path.iterdir()) == []
    assert main(where) == 0
    assert main(["--check", *where]) == 0
    capsys.readouterr()
    (tmp_path / "docs/a.md").write_text("old")
    (tmp_path / "docs/b.md").unlink()
    (tmp_path / "examples.json").write_text("{}")
    assert main(["--check", *where]) == 1
    stale = [tmp_path / name for name in ("examples.json", "docs/a.md", "docs/b.md")]
    assert capsys.readouterr().err.splitlines() == [f"{path} is stale: run `make docs`." for path in stale]


def test_every_code_is_listed_with_its_status() -> None:
    for code in ErrorCode:
        entry = f"## {code.name}\n\n{HTTP_STATUS[code.kind]}, {code.kind.value}: {code.message} {REMEDIES[code]}\n"
        assert entry in errors()


def test_the_states_show_moves_refusals_and_ends() -> None:
    text = states()
    assert "| **SUCCESS** (final) | `PAYMENT_ALREADY_PROCESSED` |" in text
    assert "    ACTIVE --> DRAINING: DISABLE" in text
    assert text.count("```mermaid") == len(MACHINES)
