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


@pytest.mark.error_lines("the embedded Postgres ended; starting it again", optional=True)
@pytest.mark.parametrize(
    ("label", "kind"),
    [
        *(("P4", CrashKind.PROCESS), ("W3", CrashKind.POSTGRES), ("J3", CrashKind.CONNECTION)),
        *((label, CrashKind.PROCESS) for label in ("P5", "W3", "W4", "O1", "O3", "J1", "J2")),
    ],
)
async def test_nothing_is_lost_or_done_twice(made: Databases, label: str, kind: CrashKind) -> None:
    assert (await tried(made, OF_LABEL[label], kind)).wrong == []
