"""A provider with something of ours before and after each of its calls."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from payagg.domain.attempt import Charge, HandOff
from payagg.domain.report import ProviderReport

R = TypeVar("R")


def nothing() -> None:
    """By default."""


class AroundProvider:
    def __init__(
        self, inner: Any, *, before: Callable[[], None] = nothing, after: Callable[[], None] = nothing
    ) -> None:
        self.inner, self.before, self.after = inner, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def start_charge(self, charge: Charge) -> HandOff:
        return await self._around(self.inner.start_charge(charge))

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        return await self._around(self.inner.fetch_charge(charge))

    async def _around(self, call: Awaitable[R]) -> R:
        self.before()
        answer = await call
        self.after()
        return answer
