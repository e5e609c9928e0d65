"""Where a thing is that is here no more. Asked only where something was not found, and only where there are cells."""

from dataclasses import dataclass

from payagg.application.ports.outside import Unavailable
from payagg.application.ports.store import Store
from payagg.domain.cell_move import ForwardingRecord, MoveState
from payagg.domain.errors import misdirected_refusal

UNDER_WAY = "the business is moving to another cell"


@dataclass(frozen=True)
class ForwardingRecords:
    """Each `ensure_...` raises MISDIRECTED_REQUEST for what another cell has now, and Unavailable for what is on its
    way there; it returns for what never left."""

    store: Store
    has_cells: bool

    async def ensure_payment_here(self, reference: str) -> None:
        if self.has_cells:
            async with self.store.begin() as tx:
                found = await tx.moves.forwarding_record_of_payment(reference)
            follow(found)

    async def ensure_key_here(self, secret_hash: bytes) -> None:
        if self.has_cells:
            async with self.store.begin() as tx:
                found = await tx.moves.forwarding_record_of_key(secret_hash)
            follow(found)

    async def ensure_business_here(self, business_id: str) -> None:
        if self.has_cells:
            async with self.store.begin() as tx:
                move = await tx.moves.of_business(business_id)
            if move is not None:
                follow(ForwardingRecord(business_id, move.cell, move.state is not MoveState.LEFT))

    async def cell_of(self, reference: str) -> str | None:
        """The cell that the payment went to, None where it did not go; raises Unavailable while it is on its way."""
        if not self.has_cells:
            return None
        async with self.store.begin() as tx:
            found = await tx.moves.forwarding_record_of_payment(reference)
        if found is None:
            return None
        if found.is_under_way:
            raise Unavailable(UNDER_WAY)
        return found.cell


def follow(post: ForwardingRecord | None) -> None:
    """As `ensure_...`, for a forwarding record that was read."""
    if post is None:
        return
    if post.is_under_way:
        raise Unavailable(UNDER_WAY)
    raise misdirected_refusal(post.cell)
