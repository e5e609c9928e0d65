"""Sends a provider's event that is for another cell to that cell, unchanged; that cell verifies it."""

from collections.abc import Mapping
from dataclasses import dataclass

from payagg.application.counters import count
from payagg.application.ports.elsewhere import EventReceiver
from payagg.application.ports.providers import Provider, ProviderEventRoute
from payagg.domain.cells import Cells
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.report import ProviderFault
from payagg.extensions.cells.ports import OtherCells


@dataclass(frozen=True)
class CellEvents:
    """Receives as ProviderEvents does. An event that another cell handed on goes to ProviderEvents itself, so none is
    handed on twice."""

    events: EventReceiver
    providers: Mapping[str, Provider]
    cells: Cells
    others: OtherCells

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
        answer = await self.others.hand_on(cell, route.path, body, headers)
        count("events_handed_on", cell)
        if answer.code is not None:
            raise Refusal(ErrorCode[answer.code], answer.message)

    def _maker(self, slug: str, body: bytes) -> str | None:
        """The other cell whose reference the event is about. What cannot be read is refused, or kept, here."""
        try:
            report = self.providers[slug].read_event(body)
        except ProviderFault:
            return None
        return None if report is None else self.cells.elsewhere(report.provider_reference)
