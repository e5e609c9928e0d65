"""One fault of each neighbour, as the laboratory's part `faults` tries all of them."""

from pathlib import Path

import pytest

from lab.faults.network import KINDS, Neighbour
from lab.faults.run import tried

OF_NAME = {kind.name: kind for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "place"),
    [("commit-reset", Neighbour.POSTGRES), ("reply-reset", Neighbour.PROVIDER_A), ("blackhole", Neighbour.MERCHANT)],
)
async def test_nothing_is_lost_or_done_twice(database_url: str, tmp_path: Path, kind: str, place: Neighbour) -> None:
    outcome = await tried(database_url, tmp_path, OF_NAME[kind], place)
    assert (outcome.struck > 0, outcome.wrong) == (True, [])
