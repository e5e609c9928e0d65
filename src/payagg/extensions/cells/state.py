"""A cell's state, for the other cells and operators."""

from msgspec import Struct


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
