"""The port of what another installation has now. Asked only where something was not found here."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from payagg.application.ports.store import Transaction


class Elsewhere(Protocol):
    """Each `ensure_...` raises MISDIRECTED_REQUEST for what another installation has, Unavailable for what is on its
    way there, and returns for what never left."""

    @property
    def prefixes(self) -> Collection[str]:
        """Of references that others make, on the same accounts at providers."""

    def ensure_gateways_are_set_here(self) -> None: ...

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        """In the caller's transaction, or in one of its own."""

    async def ensure_key_here(self, secret_hash: bytes) -> None: ...

    async def ensure_business_here(self, business_id: str) -> None: ...


@dataclass(frozen=True)
class Nowhere:
    """There is one installation, which has everything."""

    prefixes: Collection[str] = ()

    def ensure_gateways_are_set_here(self) -> None:
        return

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        return

    async def ensure_key_here(self, secret_hash: bytes) -> None:
        return

    async def ensure_business_here(self, business_id: str) -> None:
        return


NOWHERE = Nowhere()
