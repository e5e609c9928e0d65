"""What cells tell each other, and the repositories of a move between two."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from payagg.application.ports.store import Repository

if TYPE_CHECKING:
    from payagg.extensions.cells.postgres import PostgresArrivals, PostgresCell, PostgresDepartures


class CellState(Struct, rename="camel", frozen=True):
    """`schema` is the release's newest; `fits`: whether the release works on the database's. `database` identifies the
    database. `keys` are fingerprints of encryption keys by their ids, which show whether two cells have the same."""

    name: str
    release: str
    schema: str
    fits: bool
    database: str
    gateways: str  # their version
    home: str
    keys: dict[str, str]


KEY_DIGITS = 32  # enough to tell keys apart: no whole hash leaves a cell


@dataclass(frozen=True)
class CellNames:
    """What a cell has: of each active key how its SHA-256 in hex begins, and its businesses."""

    keys: list[str]
    businesses: list[str]


@dataclass(frozen=True)
class MovingPayment:
    """A payment on its way, with all that is found by its reference."""

    reference: str
    rows: Any


CELL: "Repository[PostgresCell]" = Repository("payagg.extensions.cells.postgres:PostgresCell")
DEPARTURES: "Repository[PostgresDepartures]" = Repository("payagg.extensions.cells.postgres:PostgresDepartures")
ARRIVALS: "Repository[PostgresArrivals]" = Repository("payagg.extensions.cells.postgres:PostgresArrivals")
