"""Some of the faults that `make faults` tries, one of each sort at least; and its document is about all of them."""

from pathlib import Path

import pytest

from tests.faults.cells import CELLS, KINDS, Neighbour
from tests.faults.run import DOCUMENT, row
from tests.faults.scene import tried

OF_NAME = {kind.name: kind for kind in KINDS}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("commit-reset", Neighbour.POSTGRES),
        ("half-open-us", Neighbour.POSTGRES),
        ("delay", Neighbour.PROVIDER_B),
        ("drip", Neighbour.PROVIDER_A),
        ("reply-reset", Neighbour.PROVIDER_A),
        ("blackhole", Neighbour.MERCHANT),
        ("reset-back", Neighbour.MERCHANT),
    ],
)
async def test_nothing_is_lost_or_done_twice(database_url: str, tmp_path: Path, kind: str, place: Neighbour) -> None:
    outcome = await tried(database_url, tmp_path, OF_NAME[kind], place)
    assert (outcome.struck > 0, outcome.wrong) == (True, [])


def test_the_document_has_every_fault() -> None:
    told = DOCUMENT.read_text()
    assert [kind.name for kind in KINDS if f"\n{row(kind)} " not in told] == []
    assert told.count(" holds, ") == len(CELLS)
