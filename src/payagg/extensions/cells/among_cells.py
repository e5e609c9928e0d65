"""`Elsewhere` for several cells: it knows which cell has what moved, and which cell gets a provider's event."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from payagg.application.ports.elsewhere import Elsewhere, EventReceiver
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.providers import Provider, ProviderEventRoute
from payagg.application.ports.store import Store, Transaction
from payagg.application.telemetry import count
from payagg.application.use_case import in_transaction
from payagg.domain.errors import ErrorCode, Refusal, misdirected_refusal
from payagg.domain.report import ProviderFault
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.settings import Settings
from payagg.extensions.cells.client import HttpCells
from payagg.extensions.cells.domain import Cells, ForwardingRecord, MoveState
from payagg.extensions.cells.postgres import CellRows
from payagg.extensions.cells.settings import CellSettings, known_cells


@dataclass(frozen=True)
class CellEvents:
    """A provider's event that reached another cell than the one that it is for is handed on as it came and verified
    there. Receives as ProviderEvents does. An event that another cell handed on goes to ProviderEvents itself, so none
    is handed on twice."""

    events: EventReceiver
    providers: Mapping[str, Provider]
    cells: Cells
    others: HttpCells

    async def receive(self, route: ProviderEventRoute, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises as ProviderEvents does, in the words of the cell that decided; Unavailable where that cannot be asked,
        so that the provider sends the event again."""
        cell = self._maker(route.slug, body)
        if cell is None:
            try:
                await self.events.receive(route, body, headers)
                return
            except Refusal as refusal:
                cell = refusal.cell
                if refusal.code is not ErrorCode.MISDIRECTED_REQUEST or cell not in self.cells.others or cell is None:
                    raise
        refused = await self.others.hand_on(cell, route.path, body, headers)
        count("events_handed_on", cell)
        if refused is not None:
            raise refused

    def _maker(self, slug: str, body: bytes) -> str | None:
        """The other cell whose reference the event is about. What cannot be read is refused, or kept, here."""
        try:
            report = self.providers[slug].read_event(body)
        except ProviderFault:
            return None
        return None if report is None else self.cells.elsewhere(report.provider_reference)


@dataclass(frozen=True)
class AmongCells(Elsewhere):
    """One cell's own. A refusal names the cell that has the thing now."""

    store: Store
    cells: Cells
    secret: str = field(repr=False)
    others: HttpCells

    @property
    def prefixes(self) -> Collection[str]:
        return self.cells.others.keys()

    def ensure_gateways_are_set_here(self) -> None:
        home = self.cells.home
        if not self.cells.is_home:
            raise misdirected_refusal(home, f"Gateways are set at the home cell, {home}, and reach every other.")

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        if tx is None:
            found = await in_transaction(self.store, lambda tx: tx.of(CellRows).forwarding_record_of_payment(reference))
        else:
            found = await tx.of(CellRows).forwarding_record_of_payment(reference)
        _follow(found)

    async def ensure_key_here(self, secret_hash: bytes) -> None:
        found = await in_transaction(self.store, lambda tx: tx.of(CellRows).forwarding_record_of_key(secret_hash))
        _follow(found)

    async def ensure_business_here(self, business_id: str) -> None:
        move = await in_transaction(self.store, lambda tx: tx.of(CellRows).of_business(business_id))
        if move is not None:
            _follow(ForwardingRecord(business_id, move.cell, move.state is not MoveState.LEFT))

    def is_asked_next(self, reference: str) -> bool:
        return self.cells.is_home and self.cells.elsewhere(reference) is not None

    def receiver(self, here: EventReceiver, providers: Mapping[str, Provider]) -> EventReceiver:
        return CellEvents(here, providers, self.cells, self.others)

    async def close(self) -> None:
        await self.others.aclose()


def among_cells_of(settings: Settings) -> Callable[[Store], AmongCells] | None:
    """None for one installation. Raises SettingsError when this cell is not in the list."""
    cells, secret = known_cells(settings), settings.of(CellSettings).cell_secret
    if cells is None or secret is None:
        return None
    return lambda store: AmongCells(store, cells, secret, HttpCells(cells, secret))


def among_cells(core: Services) -> AmongCells | None:
    """None for one installation."""
    return core.elsewhere if isinstance(core.elsewhere, AmongCells) else None


def _follow(record: ForwardingRecord | None) -> None:
    if record is None:
        return
    if record.is_under_way:
        raise Unavailable("the business is moving to another cell")
    raise misdirected_refusal(record.cell, f"The cell {record.cell} has this now.")
