"""The generated documents are current, and the check notices when they are not; the others name what there is."""

import re
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


FOR_CONTRIBUTORS = ("CONTRIBUTING", "docs/adding-a-provider", "docs/architecture", "docs/guide/harness", "docs/proof")


@pytest.mark.parametrize("document", FOR_CONTRIBUTORS)
def test_a_document_for_contributors_names_only_code_that_there_is(document: str) -> None:
    parts = ("src", "testing", "tests", "lab", "tools", "benchmarks")
    paths = [path for part in parts for path in (ROOT / part).rglob("*.py") if path != Path(__file__)]
    code = [({path.stem, path.parent.name}, path.read_text("utf-8")) for path in paths]

    def is_there(name: str) -> bool:
        """A word of the code; of `one.other` the module or the class `one` has the other."""
        one, _, other = name.rpartition(".")
        word, owner = re.compile(rf"\b{other}\b"), re.compile(rf"^class {one}\b" if one else "", re.M)
        return any(word.search(text) and (one in modules or owner.search(text)) for modules, text in code)

    words = re.sub("```.*?```", "", (ROOT / f"{document}.md").read_text("utf-8"), flags=re.S)
    named = {name for name in re.findall(r"`([a-z_]+[.][a-z_]+|[A-Z]+[a-z]\w+)`", words) if not name.endswith(".py")}
    assert [name for name in sorted(named) if not is_there(name)] == []
