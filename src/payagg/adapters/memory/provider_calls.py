"""Calls to providers, kept with what they answered."""

from payagg.adapters.memory.state import MemoryRepository
from payagg.application.ports.payments import ProviderCall


class MemoryProviderCalls(MemoryRepository):
    async def add(self, call: ProviderCall) -> None:
        self.state.calls[call.id] = call

    async def of_payment(self, reference: str) -> list[ProviderCall]:
        found = [call for call in self.state.calls.values() if call.reference == reference]
        return sorted(found, key=lambda call: (call.at, call.id))

    async def last_answer(self, reference: str) -> ProviderCall | None:
        answers = [call for call in self.state.calls.values() if call.reference == reference and call.word is not None]
        return max(answers, key=lambda call: call.id, default=None)
