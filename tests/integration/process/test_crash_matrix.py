"""One crash of each kind, as `make crash-matrix` tries all of them; and its document is about the steps there are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crashes.labels import LABELS, CrashKind
from tests.crashes.run import DOCUMENT, Databases, databases, row, tried

OF_LABEL = {label.name: label for label in LABELS}


@pytest.fixture(scope="module")
def crashes() -> Iterator[tuple[Databases, Path]]:
    with databases() as made:
        yield made


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("label", "kind"), [("P4", CrashKind.PROCESS), ("W3", CrashKind.POSTGRES), ("J3", CrashKind.CONNECTION)]
)
async def test_nothing_is_lost_or_done_twice(crashes: tuple[Databases, Path], label: str, kind: CrashKind) -> None:
    _, wrong = await tried(*crashes, OF_LABEL[label], kind)
    assert wrong == []


def test_the_labels_are_the_22() -> None:
    numbered = {"I": 3, "P": 5, "W": 4, "V": 2, "O": 3, "J": 3, "L": 2}
    assert sorted(OF_LABEL) == sorted(f"{letter}{n}" for letter, most in numbered.items() for n in range(1, most + 1))


def test_the_document_has_every_step() -> None:
    told = DOCUMENT.read_text()
    assert [label.name for label in LABELS if f"\n{row(label)} " not in told] == []
    assert told.count(" holds, ") == len(LABELS) * len(CrashKind)
