"""What one cell knows of the others, by names alone, and the settings that say so."""

import pytest

from payagg.domain.cells import Cells
from payagg.entrypoints.settings import SettingsError, read_settings

CELLS = Cells("PBX", {"PAY": "http://a", "PBX": "http://b", "PCX": "http://c"})
SECRET = {"PAYAGG_CELL_SECRET": "s" * 32}


def test_the_first_cell_is_home_and_a_reference_names_its_own() -> None:
    assert (CELLS.home, CELLS.is_home, list(CELLS.others)) == ("PAY", False, ["PAY", "PCX"])
    assert Cells("PAY", CELLS.origins).is_home
    for prefix, cell in (("PAY", "PAY"), ("PCX", "PCX"), ("PBX", None), ("OLD", None)):
        assert CELLS.elsewhere(f"{prefix}-20250131-7K2M9X") == cell
    assert CELLS.elsewhere("PCX-20250131-7K2M9X.2") == "PCX"


def test_the_settings_name_every_cell_or_none() -> None:
    alone = read_settings({})
    assert (alone.cells, alone.known_cells) == ((), None)
    given = {"PAYAGG_CELLS": "PAY=http://10.0.0.1:8000, PBX=https://b.example", **SECRET}
    assert read_settings(given).known_cells == Cells("PAY", {"PAY": "http://10.0.0.1:8000", "PBX": "https://b.example"})
    others = read_settings({"PAYAGG_CELLS": "PBX=http://b", **SECRET})
    with pytest.raises(SettingsError, match=r"PAYAGG_CELLS must name every cell, .* \(PAY\)"):
        _ = others.known_cells


def test_a_wrong_setting_of_cells_is_refused() -> None:
    forms = ["pay=http://a", "PAY", "PAY=http://a/", "PAY=a", "PAYS=http://a", "=http://a", "", " ", ",", " , ,"]
    faults = dict.fromkeys(forms, "PAYAGG_CELLS must be")
    faults |= dict.fromkeys(("PAY=http://a,PAY=http://b", "PAY=http://a,PBX=http://a"), "twice")
    for cells, fault in faults.items():
        with pytest.raises(SettingsError, match=fault):
            read_settings({"PAYAGG_CELLS": cells, **SECRET})
    for secret, fault in (({}, "is required"), ({"PAYAGG_CELL_SECRET": "s" * 31}, "must be 32 or more")):
        with pytest.raises(SettingsError, match=f"PAYAGG_CELL_SECRET {fault}"):
            read_settings({"PAYAGG_CELLS": "PAY=http://a", **secret})
