"""Shared by readers of providers' lists: the rate, the retries, and the reading of a line."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from payagg.adapters.providers.values import identity, instant, word
from payagg.application.ports.providers import LinePage
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport

T = TypeVar("T")
PAGE = 100  # lines
PAGE_BYTES = 4 * 1024 * 1024
REQUESTS_A_SECOND = 5  # neither provider publishes a limit; payers' calls to the same account come first
TRIES = 4
WAIT_SECONDS = 1.0  # before the second try, then twice as long each time
FINAL = (FaultKind.BAD_CREDENTIALS, FaultKind.REJECTED)


class Pace:
    """Requests that are rate-limited, and repeated after a failure."""

    def __init__(self, a_second: float = REQUESTS_A_SECOND) -> None:
        self._step = 1 / a_second
        self._next = 0.0

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Raises ProviderFault after TRIES, and at once when a repeat cannot help."""
        for number in range(1, TRIES + 1):
            await self.wait()
            try:
                return await call()
            except ProviderFault as fault:
                if fault.kind in FINAL or number == TRIES:
                    raise
                await asyncio.sleep(WAIT_SECONDS * 2 ** (number - 1))
        raise AssertionError

    async def wait(self) -> None:
        now = asyncio.get_running_loop().time()
        begin = max(now, self._next)
        self._next = begin + self._step
        await asyncio.sleep(begin - now)


def page_of(items: Sequence[msgspec.Raw], where: str, read: Callable[[msgspec.Raw], ProviderLine | None]) -> LinePage:
    """Each item as a line; an unreadable one (None, or MALFORMED) is named by its position."""
    lines, unreadable = [], []
    for number, item in enumerate(items, 1):
        try:
            line = read(item)
        except ProviderFault:
            line = None
        if line is None:
            unreadable.append(f"{where}, item {number}")
        else:
            lines.append(line)
    return LinePage(lines, unreadable)


def line(kind: LineKind, id: object, amounts: Iterable[int], at: object, report: ProviderReport) -> ProviderLine | None:
    """None for a line without an id or an amount: it cannot be told from another, or counted."""
    known = identity(id)
    most = max(amounts, default=None)
    return None if known is None or most is None else ProviderLine(kind, known, most, instant(at), report)


def foreign(reference: object, outcome: Outcome, said: object) -> ProviderReport:
    """For a line whose reference is not ours."""
    return ProviderReport(f"other:{word(reference)}", outcome, word(said))


def query(since: datetime, until: datetime) -> tuple[str, str]:
    """`from` and `to` as both providers take them."""
    return (f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000Z", f"{until.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000Z")
