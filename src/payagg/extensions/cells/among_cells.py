"""`Elsewhere` for several cells: it knows which cell has what is not here."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from payagg.application.ports.elsewhere import Elsewhere
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.store import Store, Transaction
from payagg.domain.errors import misdirected_refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.settings import Settings
from payagg.extensions.cells.client import HttpCells
from payagg.extensions.cells.domain import Cells, ForwardingRecord
from payagg.extensions.cells.places import By, Destination
from payagg.extensions.cells.postgres import CellRows
from payagg.extensions.cells.settings import CellSettings, known_cells


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
            async with self.store.begin() as own:
                return await self.ensure_payment_here(reference, own)
        cell = _cell_in(await tx.of(CellRows).forwarding_record_of_payment(reference)) or self.cells.elsewhere(
            reference
        )
        if cell is not None:
            raise misdirected_refusal(cell, f"The cell {cell} has this now.")
        return None

    async def cell_of(self, place: Destination) -> str | None:
        """The cell that has a key, a business or a payment, as far as this one knows; None for what never was here.
        Raises Unavailable for what is on its way."""
        async with self.store.begin() as tx:
            rows = tx.of(CellRows)
            if place.by is By.KEY:
                digest = bytes.fromhex(place.name)
                cell = _cell_in(await rows.forwarding_record_of_key(digest))
                is_here = cell is None and await self.store.find_key(digest) is not None
            elif place.by is By.BUSINESS:
                cell = _cell_in(await rows.forwarding_record_of_business(place.name))
                is_here = cell is None and await tx.businesses.get(place.name) is not None
            else:
                cell = _cell_in(await rows.forwarding_record_of_payment(place.name))
                is_here = cell is None and await tx.payments.get(place.name) is not None
                cell = cell or self.cells.elsewhere(place.name)
        return self.cells.own if is_here else cell

    async def ensure_event_here(self, reference: str) -> None:
        maker = self.cells.elsewhere(reference)
        if maker is not None and await self.store.find_payment(reference) is None:
            raise misdirected_refusal(maker)

    async def hand_over(self, event: ProviderEvent, cell: str) -> None:
        await self.others.hand_over(cell, event)

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


def _cell_in(record: ForwardingRecord | None) -> str | None:
    if record is not None and record.is_under_way:
        raise Unavailable("the business is moving to another cell")
    return None if record is None else record.cell
