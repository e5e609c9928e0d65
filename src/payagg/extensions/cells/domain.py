"""What cells know of each other and tell each other, and the states of a business's move between two: pure values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from msgspec import Struct

from payagg.domain.gateway import Gateway, GatewayStatus


@dataclass(frozen=True)
class Cells:
    """Every cell's origin by its name, in the order that all of them share; `own` is the one that looks.

    A cell's name is the prefix of the references that it makes. Raises ValueError where `own` is not among them.
    """

    own: str
    origins: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.own not in self.origins:
            raise ValueError(f"{self.own} is none of the cells")

    @property
    def home(self) -> str:
        """The first, where gateways are set."""
        return next(iter(self.origins))

    @property
    def is_home(self) -> bool:
        return self.own == self.home

    @property
    def others(self) -> Mapping[str, str]:
        """The origins of all but `own`."""
        return {name: origin for name, origin in self.origins.items() if name != self.own}

    def elsewhere(self, reference: str) -> str | None:
        """The other cell that made `reference`, by its form alone; None where it is ours or no cell's today."""
        name = reference[:3]
        return name if name != self.own and name in self.origins else None


class MoveState(Enum):
    """How far a move has come, as the cell says that keeps the word. LEAVING, MOVING and LEFT are those of the cell
    that the business leaves, ARRIVING is that of the other."""

    LEAVING = "LEAVING"  # closed: its keys and members are in the outbox
    MOVING = "MOVING"  # the other cell is ready for its payments
    LEFT = "LEFT"
    ARRIVING = "ARRIVING"


@dataclass(frozen=True)
class BusinessMove:
    """`cell` is the other one: where the business goes, or, while it is ARRIVING, where it comes from."""

    business_id: str
    cell: str
    state: MoveState
    at: datetime  # when it began


def counterparts(own: Iterable[Gateway], others: Iterable[Gateway]) -> dict[str, str]:
    """For gateways of one cell, by id, those of the other that stand for them: of the same id, or else its living one
    of the same slug. One that has none is left out."""
    there = list(others)
    known = {gateway.id for gateway in there}
    living = {gateway.slug: gateway.id for gateway in there if gateway.status is not GatewayStatus.DELETED}
    found = {gateway.id: gateway.id if gateway.id in known else living.get(gateway.slug) for gateway in own}
    return {id: other for id, other in found.items() if other is not None}


class CellState(Struct, rename="camel", frozen=True):
    """`schema` is the release's newest; `fits`: whether the release works on the database's. `database` identifies the
    database. `keys` are fingerprints of encryption keys by their ids, which show whether two cells have the same."""

    name: str
    release: str
    schema: str
    fits: bool
    database: str
    gateways: str  # their version
    cells: list[str]  # their names, in its order
    keys: dict[str, str]


KEY_DIGITS = 32  # enough to tell keys apart: no whole hash leaves a cell


@dataclass(frozen=True)
class CellNames:
    """What a cell has: of each active key how its SHA-256 in hex begins, and its businesses."""

    keys: list[str]
    businesses: list[str]
