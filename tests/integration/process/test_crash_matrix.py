"""One crash of each kind, as the laboratory's part `crashes` tries all of them."""

from collections.abc import Iterator

import pytest

from lab.crashes.child import CrashKind
from lab.crashes.run import LABELS, tried
from lab.kit.places import Databases, databases

OF_LABEL = {label.name: label for label in LABELS}


@pytest.fixture(scope="module")
def made() -> Iterator[Databases]:
    with databases("crashes") as made:
        yield made


@pytest.mark.anyio
@pytest.mark.error_lines("the embedded Postgres ended; starting it again", optional=True)
@pytest.mark.parametrize(
    ("label", "kind"), [("P4", CrashKind.PROCESS), ("W3", CrashKind.POSTGRES), ("J3", CrashKind.CONNECTION)]
)
async def test_nothing_is_lost_or_done_twice(made: Databases, label: str, kind: CrashKind) -> None:
    assert (await tried(made, OF_LABEL[label], kind)).wrong == []


def test_the_labels_are_the_22() -> None:
    numbered = {"I": 3, "P": 5, "W": 4, "V": 2, "O": 3, "J": 3, "L": 2}
    assert sorted(OF_LABEL) == sorted(f"{letter}{n}" for letter, most in numbered.items() for n in range(1, most + 1))
