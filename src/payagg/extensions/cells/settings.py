"""What an installation of several cells has in common, and what each cell is told of the others."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from payagg.entrypoints import setting_kinds as kinds
from payagg.entrypoints.setting_kinds import SettingKind, Unfit
from payagg.entrypoints.settings import ExtensionSettings, Settings, SettingsError, setting
from payagg.extensions.cells.domain import Cells


def _cells(text: str) -> tuple[tuple[str, str], ...]:
    cells = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, origin = item.partition("=")
        if not re.fullmatch("[A-Z]{3}", name):
            raise ValueError
        cells.append((name, kinds.origin(origin)))
    if not cells:
        raise ValueError
    if len(dict(cells)) != len(cells) or len({origin for _, origin in cells}) != len(cells):
        raise Unfit("must not name one prefix or one origin twice")
    return tuple(cells)


# An empty list would make an installation of its own of a cell.
CELLS = SettingKind(
    "a comma list of PFX=origin, for example PAY=http://10.0.0.1:8000,PBX=http://10.0.0.2:8000",
    _cells,
    may_be_empty=False,
)
CELL_SECRET = kinds.matching(r"[\x21-\x7e]{32,}", "32 or more printable characters without spaces")


@dataclass(frozen=True)
class CellSettings(ExtensionSettings):
    cells: tuple[tuple[str, str], ...] | None = setting(
        None,
        CELLS,
        "every cell by its `PAYAGG_REFERENCE_PREFIX`, the home cell first; the same list in all cells",
        unset="none: one installation",
    )
    cell_secret: str | None = setting(None, CELL_SECRET, "secret by which cells recognise each other", secret=True)
    target_database_url: str | None = setting(
        None, kinds.DATABASE_URL, "the other cell's database, only for `payagg cell move`", secret=True
    )

    def faults(self) -> Iterator[str]:
        if self.cells and self.cell_secret is None:
            yield "PAYAGG_CELL_SECRET is required with PAYAGG_CELLS: cells prove themselves to each other with it."


def known_cells(settings: Settings) -> Cells | None:
    """The cells as one of them sees them, None for one installation; raises SettingsError where it is not among
    them."""
    listed = settings.of(CellSettings).cells
    if not listed:
        return None
    try:
        return Cells(settings.reference_prefix, dict(listed))
    except ValueError:
        raise SettingsError(
            f"PAYAGG_CELLS must name every cell, this one's PAYAGG_REFERENCE_PREFIX ({settings.reference_prefix}) too."
        ) from None


def listed_cells(settings: Settings) -> Cells:
    """The cells as an operator sees them. Raises SettingsError where none are set."""
    listed = settings.of(CellSettings).cells
    if not listed:
        raise SettingsError("PAYAGG_CELLS is not set: this is one installation, which knows nothing of cells.")
    return Cells(listed[0][0], dict(listed))
