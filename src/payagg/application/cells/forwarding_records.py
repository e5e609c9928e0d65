"""Where a thing is that moved to another cell, as `Elsewhere` of the core asks."""

from collections.abc import Collection
from dataclasses import dataclass

from payagg.application.ports.outside import Unavailable
from payagg.application.ports.store import Store, Transaction
from payagg.domain.cell_move import ForwardingRecord, MoveState
from payagg.domain.cells import Cells
from payagg.domain.errors import misdirected_refusal

UNDER_WAY = "the business is moving to another cell"


@dataclass(frozen=True)
class ForwardingRecords:
    store: Store
    cells: Cells

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
                found = await own.moves.forwarding_record_of_payment(reference)
        else:
            found = await tx.moves.forwarding_record_of_payment(reference)
        _follow(found)

    async def ensure_key_here(self, secret_hash: bytes) -> None:
        async with self.store.begin() as tx:
            found = await tx.moves.forwarding_record_of_key(secret_hash)
        _follow(found)

    async def ensure_business_here(self, business_id: str) -> None:
        async with self.store.begin() as tx:
            move = await tx.moves.of_business(business_id)
        if move is not None:
            _follow(ForwardingRecord(business_id, move.cell, move.state is not MoveState.LEFT))


async def cell_of(store: Store, reference: str) -> str | None:
    """The cell that the payment went to, None where it did not go; raises Unavailable while it is on its way."""
    async with store.begin() as tx:
        found = await tx.moves.forwarding_record_of_payment(reference)
    if found is None:
        return None
    if found.is_under_way:
        raise Unavailable(UNDER_WAY)
    return found.cell


def _follow(record: ForwardingRecord | None) -> None:
    if record is None:
        return
    if record.is_under_way:
        raise Unavailable(UNDER_WAY)
    raise misdirected_refusal(record.cell)
