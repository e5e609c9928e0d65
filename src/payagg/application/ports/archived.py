"""Ports of payments whose history is in an archive: what is left of them here, and the reading of the rest."""

from typing import Protocol

from payagg.application.ports.payments import ProviderCall
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.attempt import Attempt
from payagg.domain.payment import Transition


class ArchiveDamaged(Exception):
    """A file of the archive is missing, or is not what its manifest says."""


class ArchivedHistories(Protocol):
    async def read(
        self, part: ArchivePart, reference: str
    ) -> tuple[list[Transition], list[Attempt], list[ProviderCall]]:
        """Of one payment. Raises ArchiveDamaged, Unavailable."""


class ArchivedPaymentRepository(Protocol):
    async def find(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None: ...
