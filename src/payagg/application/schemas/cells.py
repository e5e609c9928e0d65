"""What a cell says of itself to the other cells, the router and operators."""

from msgspec import Struct


class CellKey(Struct, frozen=True):
    """An encryption key by its id and a fingerprint: whether two cells have the same one, and not which."""

    kid: str
    fingerprint: str


class CellState(Struct, rename="camel", frozen=True):
    """`schema` is the newest of the release; `fits` whether the database's is one that it works on.
    `database` is a word for the database that no other one has."""

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
