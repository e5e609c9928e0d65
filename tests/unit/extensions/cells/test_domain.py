"""What one cell knows of the others, by names alone."""

from payagg.extensions.cells.domain import Cells

CELLS = Cells("PBX", {"PAY": "http://a", "PBX": "http://b", "PCX": "http://c"})


def test_the_first_cell_is_home_and_a_reference_names_its_own() -> None:
    assert (CELLS.home, CELLS.is_home, list(CELLS.others)) == ("PAY", False, ["PAY", "PCX"])
    assert Cells("PAY", CELLS.origins).is_home
    for prefix, cell in (("PAY", "PAY"), ("PCX", "PCX"), ("PBX", None), ("OLD", None)):
        assert CELLS.elsewhere(f"{prefix}-20250131-7K2M9X") == cell
    assert CELLS.elsewhere("PCX-20250131-7K2M9X.2") == "PCX"
