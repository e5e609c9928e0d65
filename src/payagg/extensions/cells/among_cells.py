"""`Elsewhere` for several cells: it knows which cell has what is not here."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import msgspec

from payagg.adapters.security import AesVault
from payagg.application.ports.elsewhere import Elsewhere
from payagg.application.ports.outside import Vault
from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.store import Store, Transaction
from payagg.domain.errors import misdirected_refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.settings import Settings
from payagg.extensions.cells.client import HttpCells
from payagg.extensions.cells.domain import Cells
from payagg.extensions.cells.places import By, Destination
from payagg.extensions.cells.postgres import HERE, CellRows
from payagg.extensions.cells.settings import CellSettings, known_cells

EVENT = "event for another cell"  # what an event is sealed for


@dataclass(frozen=True)
class AmongCells(Elsewhere):
    """One cell's own. A refusal names the cell that has the thing now."""

    store: Store
    cells: Cells
    secret: str = field(repr=False)
    others: HttpCells
    vault: Vault = field(repr=False)

    @property
    def prefixes(self) -> Collection[str]:
        return self.cells.others.keys()

    def ensure_gateways_are_set_here(self) -> None:
        home = self.cells.home
        if not self.cells.is_home:
            raise misdirected_refusal(home, f"Gateways are set at the home cell, {home}, and reach every other.")

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        cell = await self.cell_of(Destination(By.REFERENCE, reference), tx)
        if cell not in (None, self.cells.own):
            raise misdirected_refusal(cell, f"The cell {cell} has this now.")

    async def ensure_event_here(self, reference: str) -> None:
        if self.cells.elsewhere(reference) is not None:
            await self.ensure_payment_here(reference)

    async def cell_of(self, place: Destination, tx: Transaction | None = None) -> str | None:
        """The cell that has a key, a business or a payment, as far as this one knows; None for what never was here.
        Raises Unavailable for what is on its way."""
        if tx is None:
            async with self.store.begin() as own:
                return await self.cell_of(place, own)
        cell = await tx.of(CellRows).cell_of(place)
        if cell is None and place.by is By.REFERENCE:
            return self.cells.elsewhere(place.name)
        return self.cells.own if cell == HERE else cell

    async def hand_over(self, event: ProviderEvent, cell: str) -> None:
        # The other cell cannot look at the provider's signature any more. The secret, which the front has too, makes no
        # event: the encryption keys are the cells' alone.
        await self.others.hand_over(cell, self.vault.seal(msgspec.json.encode(event), EVENT))

    async def close(self) -> None:
        await self.others.aclose()


def among_cells_of(settings: Settings) -> Callable[[Store], AmongCells] | None:
    """None for one installation. Raises SettingsError when this cell is not in the list."""
    cells, secret = known_cells(settings), settings.of(CellSettings).cell_secret
    if cells is None or secret is None:
        return None
    vault = AesVault(settings.encryption_keys)
    return lambda store: AmongCells(store, cells, secret, HttpCells(cells, secret), vault)


def among_cells(core: Services) -> AmongCells | None:
    """None for one installation."""
    return core.elsewhere if isinstance(core.elsewhere, AmongCells) else None
