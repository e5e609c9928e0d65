"""What moves between cells need: the rows of a business, and the other cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from payagg.application.ports.store import Repository
from payagg.domain.audit import AuditEntry
from payagg.domain.cell_move import BusinessMove, ForwardingRecord
from payagg.domain.gateway import Gateway
from payagg.domain.values import Environment


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
class EventAnswer:
    """What the cell that an event was handed on to answered the provider; `code` None = it has the event."""

    code: str | None
    message: str = ""


@dataclass(frozen=True)
class CellAnswer:
    """A whole answer of a cell; the names of its headers are in small letters."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes


class OtherCells(Protocol):
    """The cells beside this one. Each call is bounded in time and raises Unavailable when a cell cannot be asked."""

    async def home_gateways(self) -> list[Gateway]:
        """Every gateway of the home cell, deleted ones too."""

    async def home_logo(self, gateway_id: str) -> bytes: ...

    async def hand_on(self, cell: str, path: str, body: bytes, headers: Mapping[str, str]) -> EventAnswer:
        """Gives a provider's event to the cell that it is for, or to where that says that it is now; `path` follows
        /webhooks, `headers` are the provider's."""

    async def find(self, place: str) -> str | None:
        """The cell that has the key or the business (`keys/` or `businesses/` and its name), None where none has."""

    async def forward(
        self, cell: str, method: str, target: bytes, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> CellAnswer:
        """Sends a client's request to `cell`, or to where that says that it is for."""

    async def close(self) -> None: ...


class CellRepository(Protocol):
    """What a cell has, and where it went that is here no more."""

    async def of_business(self, business_id: str) -> BusinessMove | None: ...

    async def forwarding_record_of_payment(self, reference: str) -> ForwardingRecord | None: ...

    async def forwarding_record_of_key(self, secret_hash: bytes) -> ForwardingRecord | None: ...

    async def names(self) -> CellNames:
        """In order. A business that is still arriving is where it comes from."""

    async def schema(self) -> str:
        """The name of the schema; `rows` go between equal ones alone."""

    async def database(self) -> str:
        """A word that no other database has, and this one until its server starts anew."""

    async def gateways_in_use(self, business_id: str) -> set[str]:
        """The ids of those that the business has settings of, or charges at that are still to be asked about."""

    async def environments(self, business_id: str) -> set[Environment]:
        """Those in which it has active keys or payments."""

    async def signing_secrets(self, business_id: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Signing secrets of endpoints, of one business or of any, each with its context in the vault."""


class DepartureRepository(Protocol):
    """A business in the cell that it leaves. What is on its way is `rows`: as one store wrote them, and as one of the
    same kind and schema reads them."""

    async def close(self, business_id: str, cell: str, at: datetime) -> bool:
        """Its keys and members are on their way, and nothing of it changes any more but its payments; False where there
        is no such business, or it was closed before."""

    async def open_transactions(self) -> frozenset[str]:
        """A name for each transaction that may have begun before now and may still write."""

    async def profile(self, business_id: str) -> Any:
        """Rows of the business, its settings and its endpoints, without what the endpoints have counted."""

    async def start(self, business_id: str) -> None:
        """LEAVING becomes MOVING."""

    async def take(self, business_id: str, now: datetime, limit: int) -> int:
        """Payments that are on their way from now on, with all that is theirs; how many. One whose charge is being
        started, or that a delivery is being sent of, is left for later, and so is one that somebody holds."""

    async def has_payments(self, business_id: str) -> bool: ...

    async def under_way(self, business_id: str, limit: int) -> list["MovingPayment"]: ...

    async def forget_arrivals(self, references: Sequence[str]) -> None:
        """Nothing is kept of them but where they went."""

    async def belongings(self, business_id: str) -> Any:
        """Rows of its keys, its members and what its endpoints have counted."""

    async def leave(self, business_id: str) -> bool:
        """Nothing is kept but where the business and its keys went; False, and nothing is changed, while a payment is
        here."""


class ArrivalRepository(Protocol):
    """A business in the cell where it arrives. `gateways` are the ids here of the other cell's."""

    async def prepare(self, move: BusinessMove, profile: Any, gateways: Mapping[str, str]) -> None:
        """Makes the business, closed as it is where it comes from; nothing where it is there already."""

    async def receive(self, payments: Sequence["MovingPayment"], gateways: Mapping[str, str]) -> int:
        """Adds those that are not there; how many."""

    async def receive_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Adds those that are not there."""

    async def open(self, business_id: str, belongings: Any) -> bool:
        """Its keys and members hold from now on; False where they did before."""


@dataclass(frozen=True)
class MovingPayment:
    """A payment on its way, with all that is found by its reference."""

    reference: str
    rows: Any


CELL: Repository[CellRepository] = Repository("payagg.extensions.cells.postgres:PostgresCell")
DEPARTURES: Repository[DepartureRepository] = Repository("payagg.extensions.cells.postgres:PostgresDepartures")
ARRIVALS: Repository[ArrivalRepository] = Repository("payagg.extensions.cells.postgres:PostgresArrivals")
