"""The generated documents are current, and the check notices when they are not."""

from pathlib import Path

import pytest

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.cli.docs import MACHINES, documents, errors, main, states
from payagg.entrypoints.http.openapi.remedies import REMEDIES

ROOT = Path(__file__).parents[2]


def test_the_committed_documents_are_current() -> None:
    assert main(["--check", "--into", str(ROOT)]) == 0


def test_a_stale_or_missing_document_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--into", str(tmp_path), "--examples", str(tmp_path / "examples.json")]
    assert main(where) == 0
    assert main(["--check", *where]) == 0
    (tmp_path / "docs/errors.md").write_text("old")
    (tmp_path / "docs/states.md").unlink()
    (tmp_path / "examples.json").write_text("{}")
    assert main(["--check", *where]) == 1
    told = capsys.readouterr().err
    assert f"{tmp_path / 'docs/errors.md'} is stale" in told
    assert f"{tmp_path / 'docs/states.md'} is stale" in told
    assert f"{tmp_path / 'examples.json'} is stale" in told


def test_checking_writes_nothing(tmp_path: Path) -> None:
    assert main(["--check", "--into", str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_is_listed_with_its_status(code: ErrorCode) -> None:
    row = next(line for line in errors().splitlines() if line.startswith(f"| `{code.name}` "))
    assert code.message in row
    assert REMEDIES[code] in row
    assert [cell.strip() for cell in row.split("|")][3].isdigit()


def test_the_states_show_moves_refusals_and_ends() -> None:
    text = states()
    assert "| **SUCCESS** (final) | `PAYMENT_ALREADY_PROCESSED` |" in text
    assert "    ACTIVE --> DRAINING: DISABLE" in text
    assert text.count("```mermaid") == len(MACHINES)


def test_the_documents_are_the_same_each_time() -> None:
    assert documents() == documents()
