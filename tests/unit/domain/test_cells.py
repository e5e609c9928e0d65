"""What one cell knows of the others, by names alone, and the settings that say so."""

import pytest

from payagg.domain.cells import Cells
from payagg.entrypoints.settings import SettingsError, read_settings

CELLS = Cells("PBX", {"PAY": "http://a", "PBX": "http://b", "PCX": "http://c"})
SECRET = {"PAYAGG_CELL_SECRET": "s" * 32}


def test_the_first_cell_is_home() -> None:
    assert CELLS.home == "PAY"
    assert not CELLS.is_home
    assert Cells("PAY", CELLS.origins).is_home
    assert list(CELLS.others) == ["PAY", "PCX"]


def test_a_reference_names_its_cell() -> None:
    assert CELLS.elsewhere("PAY-20250131-7K2M9X") == "PAY"
    assert CELLS.elsewhere("PCX-20250131-7K2M9X.2") == "PCX"
    assert CELLS.elsewhere("PBX-20250131-7K2M9X") is None
    assert CELLS.elsewhere("OLD-20250131-7K2M9X") is None


def test_one_installation_knows_nothing_of_cells() -> None:
    settings = read_settings({})
    assert settings.cells == ()
    assert settings.known_cells is None


def test_the_settings_name_every_cell() -> None:
    given = {"PAYAGG_CELLS": "PAY=http://10.0.0.1:8000, PBX=https://b.example", **SECRET}
    assert read_settings(given).known_cells == Cells("PAY", {"PAY": "http://10.0.0.1:8000", "PBX": "https://b.example"})
    for bad in ("pay=http://a", "PAY", "PAY=http://a/", "PAY=a", "PAYS=http://a", "=http://a"):
        with pytest.raises(SettingsError, match="PAYAGG_CELLS must be"):
            read_settings({"PAYAGG_CELLS": bad, **SECRET})
    for twice in ("PAY=http://a,PAY=http://b", "PAY=http://a,PBX=http://a"):
        with pytest.raises(SettingsError, match="twice"):
            read_settings({"PAYAGG_CELLS": twice, **SECRET})


def test_a_cell_is_one_of_the_cells() -> None:
    others = read_settings({"PAYAGG_CELLS": "PBX=http://b", **SECRET})
    with pytest.raises(SettingsError, match=r"PAYAGG_CELLS must name every cell, .* \(PAY\)"):
        _ = others.known_cells


def test_cells_need_a_secret_between_them() -> None:
    with pytest.raises(SettingsError, match="PAYAGG_CELL_SECRET is required"):
        read_settings({"PAYAGG_CELLS": "PAY=http://a"})
    with pytest.raises(SettingsError, match="PAYAGG_CELL_SECRET must be 32 or more"):
        read_settings({"PAYAGG_CELLS": "PAY=http://a", "PAYAGG_CELL_SECRET": "s" * 31})
