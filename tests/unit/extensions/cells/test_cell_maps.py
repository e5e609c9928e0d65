"""The maps that `payagg cell map` writes."""

from pathlib import Path

from payagg.extensions.cells.cell_maps import CellMaps
from payagg.extensions.cells.domain import CellNames, Cells

CELLS = Cells("PAY", {"PAY": "http://127.0.0.1:1", "PBX": "http://127.0.0.1:2"})
KEYS = ("a" * 32, "b" * 32, "c" * 32)


def text(folder: Path, name: str) -> str:
    return (folder / f"{name}.map").read_text(encoding="utf-8")


def test_a_cell_that_is_away_keeps_its_lines(tmp_path: Path) -> None:
    whole = {"PAY": CellNames([KEYS[0]], ["biz_1"]), "PBX": CellNames([KEYS[1], KEYS[2]], ["biz_2"])}
    CellMaps(CELLS, tmp_path, None).write(whole)
    assert text(tmp_path, "keys") == f"{KEYS[0]} PAY\n{KEYS[1]} PBX\n{KEYS[2]} PBX\n"
    assert text(tmp_path, "businesses") == "biz_1 PAY\nbiz_2 PBX\n"
    prefixes = "".join(f"/{name}-[0-9]{{8}}-[A-Z0-9]{{6}}(/|$) {name}\n" for name in CELLS.origins)
    assert text(tmp_path, "prefixes") == prefixes

    # PBX is away, and one of its keys has moved; PAY's own key was revoked.
    CellMaps(CELLS, tmp_path, None).write({"PAY": CellNames([KEYS[2]], [])})
    assert text(tmp_path, "keys") == f"{KEYS[1]} PBX\n{KEYS[2]} PAY\n"
    assert text(tmp_path, "businesses") == "biz_2 PBX\n"

    alone = Cells("PAY", {"PAY": "http://127.0.0.1:1"})
    CellMaps(alone, tmp_path, None).write({"PAY": CellNames([], ["biz_1"])})
    assert (text(tmp_path, "keys"), text(tmp_path, "businesses")) == ("", "biz_1 PAY\n")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["businesses.map", "keys.map", "prefixes.map"]


def test_a_map_that_is_current_is_not_written_again(tmp_path: Path) -> None:
    maps = CellMaps(CELLS, tmp_path, None)
    maps.write({"PAY": CellNames([KEYS[0]], [])})
    before = (tmp_path / "keys.map").stat().st_ino
    maps.write({"PAY": CellNames([KEYS[0]], [])})
    assert (tmp_path / "keys.map").stat().st_ino == before
