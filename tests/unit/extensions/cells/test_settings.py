"""The settings that name every cell."""

import pytest

from payagg.entrypoints.settings import SettingsError, read_settings
from payagg.extensions.cells.domain import Cells
from payagg.extensions.cells.settings import CellSettings, known_cells

SECRET = {"PAYAGG_CELL_SECRET": "s" * 32}


def test_the_settings_name_every_cell_or_none() -> None:
    alone = read_settings({})
    assert (alone.of(CellSettings).cells, known_cells(alone)) == (None, None)
    given = {"PAYAGG_CELLS": "PAY=http://10.0.0.1:8000, PBX=https://b.example", **SECRET}
    origins = {"PAY": "http://10.0.0.1:8000", "PBX": "https://b.example"}
    assert known_cells(read_settings(given)) == Cells("PAY", origins)
    others = read_settings({"PAYAGG_CELLS": "PBX=http://b", **SECRET})
    with pytest.raises(SettingsError, match=r"PAYAGG_CELLS must name every cell, .* \(PAY\)"):
        known_cells(others)


@pytest.mark.parametrize(
    ("cells", "secret", "fault"),
    [
        *((bad, SECRET, "PAYAGG_CELLS must be") for bad in ("pay=http://a", "PAY", "PAY=http://a/", "PAY=a")),
        *((bad, SECRET, "PAYAGG_CELLS must be") for bad in ("PAYS=http://a", "=http://a")),
        *((nobody, SECRET, "PAYAGG_CELLS must be") for nobody in ("", " ", ",", " , ,")),
        *((twice, SECRET, "twice") for twice in ("PAY=http://a,PAY=http://b", "PAY=http://a,PBX=http://a")),
        ("PAY=http://a", {}, "PAYAGG_CELL_SECRET is required"),
        ("PAY=http://a", {"PAYAGG_CELL_SECRET": "s" * 31}, "PAYAGG_CELL_SECRET must be 32 or more"),
    ],
)
def test_a_wrong_setting_of_cells_is_refused(cells: str, secret: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        read_settings({"PAYAGG_CELLS": cells, **secret})
