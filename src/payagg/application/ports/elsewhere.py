"""What another installation has now: the one place where the core knows of others. It is asked where a payment was not
found here, where gateways change, and about a provider's event."""

from collections.abc import Collection

from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.store import Transaction


class Elsewhere:
    """Where there is one installation, which has everything; an extension knows better."""

    @property
    def prefixes(self) -> Collection[str]:
        """Of references that others make, on the same accounts at providers."""
        return ()

    def ensure_gateways_are_set_here(self) -> None:
        """Raises MISDIRECTED_REQUEST where another installation sets them."""

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        """Of one that is not here; in the caller's transaction, or in one of its own. Raises MISDIRECTED_REQUEST where
        it went to another installation or one made it, and Unavailable for one on its way there."""

    async def ensure_event_here(self, reference: str) -> None:
        """Raises MISDIRECTED_REQUEST for an event about a payment that another installation made, and that is not
        here."""

    async def hand_over(self, event: ProviderEvent, cell: str) -> None:
        """Has the installation `cell`, which has its payment, handle an event that was kept here. Raises
        Unavailable."""

    async def close(self) -> None: ...


NOWHERE = Elsewhere()
