"""What another installation has now: the one place where the core knows of others. It is asked where a payment was not
found here, where gateways change, and who receives a provider's event."""

from collections.abc import Collection, Mapping
from typing import Protocol

from payagg.application.ports.providers import Provider, ProviderEventRoute
from payagg.application.ports.store import Transaction


class EventReceiver(Protocol):
    async def receive(self, route: ProviderEventRoute, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises as ProviderEvents does."""


class Elsewhere:
    """Where there is one installation, which has everything; an extension knows better."""

    @property
    def prefixes(self) -> Collection[str]:
        """Of references that others make, on the same accounts at providers."""
        return ()

    def ensure_gateways_are_set_here(self) -> None:
        """Raises MISDIRECTED_REQUEST where another installation sets them."""

    async def ensure_payment_here(self, reference: str, tx: Transaction | None = None) -> None:
        """In the caller's transaction, or in one of its own. Raises MISDIRECTED_REQUEST for one that another
        installation has, Unavailable for one on its way there, and returns for one that never left."""

    def is_asked_next(self, reference: str) -> bool:
        """Whether what a payer asks about `reference`, which is not here, goes on to another installation, which counts
        guesses itself."""
        return False

    def receiver(self, here: EventReceiver, providers: Mapping[str, Provider]) -> EventReceiver:
        """Who gets what providers send to this installation; `here` handles what is its own."""
        return here

    async def close(self) -> None: ...


NOWHERE = Elsewhere()
