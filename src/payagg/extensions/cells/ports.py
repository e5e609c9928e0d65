"""What cells tell each other, and the repositories of a move between two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from payagg.application.ports.store import Repository

if TYPE_CHECKING:
    from payagg.extensions.cells.postgres import PostgresArrivals, PostgresCell, PostgresDepartures


class CellKey(Struct, frozen=True):
    """An encryption key's id and fingerprint: shows whether two cells have the same key, not the key."""

    kid: str
    fingerprint: str


class CellState(Struct, rename="camel", frozen=True):
    """`schema` is the release's newest; `fits`: whether the release works on the database's. `database` identifies the
    database."""

    name: str
    release: str
    schema: str
    fits: bool
    database: str
    businesses: int
    active_businesses: int
    gateways: str  # their version
    home: str
    keys: tuple[CellKey, ...]


KEY_DIGITS = 32  # enough to tell keys apart: no whole hash leaves a cell


@dataclass(frozen=True)
class CellNames:
    """What a cell has: of each active key how its SHA-256 in hex begins, and its businesses."""

    keys: list[str]
    businesses: list[str]


@dataclass(frozen=True)
class CellAnswer:
    """A whole answer of a cell; the names of its headers are in small letters."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes


@dataclass(frozen=True)
class MovingPayment:
    """A payment on its way, with all that is found by its reference."""

    reference: str
    rows: Any


CELL: "Repository[PostgresCell]" = Repository("payagg.extensions.cells.postgres:PostgresCell")
DEPARTURES: "Repository[PostgresDepartures]" = Repository("payagg.extensions.cells.postgres:PostgresDepartures")
ARRIVALS: "Repository[PostgresArrivals]" = Repository("payagg.extensions.cells.postgres:PostgresArrivals")
