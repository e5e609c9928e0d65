"""Each decision is one record of one form, and the index names them all."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
FORM = re.compile(
    r"# (?P<number>[0-9]{4})\. (?P<title>[^\n]+)\n\n"
    r"Date: (?P<date>20[0-9]{2}-[0-9]{2}-[0-9]{2})\. Status: (?P<status>accepted|superseded by [0-9]{4})\.\n\n"
    r"\*\*Context\.\*\* .+\n\n\*\*Decision\.\*\* .+\n\n\*\*Alternatives\.\*\* .+\n\n\*\*Consequences\.\*\* .+\n",
    re.DOTALL,
)


def read(path: Path) -> re.Match[str]:
    found = FORM.fullmatch(path.read_text(encoding="utf-8"))
    assert found is not None, f"{path.name} lacks one of: number, title, date, status, the four paragraphs in order"
    return found


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_its_six_parts_and_one_choice(path: Path) -> None:
    record = read(path)
    assert path.name.startswith(record["number"] + "-")
    assert record[0].count("**Decision.**") == 1
    assert len(record[0]) < 3_000, "short, or it is two choices"


def test_no_number_is_taken_twice() -> None:
    numbers = [path.name[:4] for path in RECORDS]
    assert len(numbers) > 80
    assert sorted(set(numbers)) == numbers


def test_the_index_names_every_record_as_it_names_itself() -> None:
    rows = re.findall(
        r"^\| \[([0-9]{4})\]\((\S+)\) \| (.+) \| (\S+) \| (.+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    records = [(path.name, read(path)) for path in RECORDS]
    assert rows == [(r["number"], name, r["title"], r["date"], r["status"]) for name, r in records]
