"""docs/glossary.md: each word stands in the file that it names, once, in order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| ([\w -]+) \| (.+) \| `(\S+)` \|$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
)


def plain(text: str) -> str:
    """Lower case without what separates words, so that `is_handed_off`, HandOff and "hand-off" read alike."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


@pytest.mark.parametrize(("word", "file"), [(word, file) for word, _, file in ROWS])
def test_a_word_stands_in_its_file(word: str, file: str) -> None:
    path = ROOT / "src" / "payagg" / file
    assert path.is_file(), file
    text = plain(file + path.read_text(encoding="utf-8"))
    # Words that belong together may stand apart: `token: str  # fencing: ...`.
    assert plain(word) in text or all(plain(part) in text for part in word.split())


def test_words_are_in_order_and_explained_once() -> None:
    words = [word.lower() for word, _, _ in ROWS]
    assert len(words) > 70
    assert words == sorted(set(words))
