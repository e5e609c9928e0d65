"""Shared by readers of providers' lists and of their statements: the rate, the retries, and the reading of a
line or a row."""

import asyncio
import csv
import io
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from payagg.adapters.providers.values import identity, instant, kobo_of, word
from payagg.application.ports.providers import LinePage
from payagg.domain.errors import Refusal, invalid
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


LineOf = Callable[[Mapping[str, str], int | None, int | None], ProviderLine | None]
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class StatementShape:
    """`columns`: by each column's name in small letters, a space for each `_`, what it holds. `units`: of those that
    hold money, kobo in one of its units. `ignored`: columns that are known and not read. Any other column is refused:
    what was renamed may mean something else."""

    columns: Mapping[str, str]
    required: tuple[str, ...]
    units: Mapping[str, int]
    ignored: frozenset[str]


def read_csv(content: bytes, shape: StatementShape, line_of: LineOf) -> LinePage:
    """The lines of a file. `line_of` gets a row's texts by what they hold, and the amount and fee in kobo. Raises
    VALIDATION_ERROR on `file` for one that is no statement of this shape."""
    try:
        rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = [name.strip().lower().replace("_", " ") for name in next(rows, [])]
        _check(header, shape)
        lines: list[ProviderLine] = []
        unreadable: list[str] = []
        for row in rows:
            if not row:
                continue
            made = _line(header, row, shape, line_of)
            if made is None:
                unreadable.append(f"row that ends at line {rows.line_num}")
            else:
                lines.append(made)
    except UnicodeDecodeError:
        raise invalid("file", "Must be text in UTF-8.") from None
    except csv.Error as error:
        raise invalid("file", f"Is no CSV: {error} before line {rows.line_num}.") from None
    return LinePage(lines, unreadable, len(lines) + len(unreadable))


def _check(header: list[str], shape: StatementShape) -> None:
    for name in header:
        if name not in shape.columns and name not in shape.ignored:
            raise invalid("file", f"Has an unknown column {name[:60]!r}.")
        if header.count(name) > 1:
            raise invalid("file", f"Has the column {name[:60]!r} twice.")
    held = [shape.columns[name] for name in header if name in shape.columns]
    for wanted in shape.required:
        if wanted not in held:
            names = [repr(name) for name, holds in shape.columns.items() if holds == wanted]
            raise invalid("file", f"Lacks a column: {' or '.join(names)}.")
        if held.count(wanted) > 1:
            raise invalid("file", f"Has two columns of one meaning ({wanted}).")


def _line(
    header: list[str],
    row: list[str],
    shape: StatementShape,
    line_of: LineOf,
) -> ProviderLine | None:
    if len(row) != len(header):
        return None
    texts: dict[str, str] = {}
    kobo: dict[str, int | None] = {}
    for name, value in zip(header, row, strict=True):
        holds = shape.columns.get(name)
        if holds is not None:
            texts[holds] = value.strip()
        if holds is not None and name in shape.units:
            kobo[holds] = _kobo(value.strip(), shape.units[name])
    try:
        return line_of(texts, kobo.get("amount"), kobo.get("fee"))
    except Refusal:  # a text that no report may have
        return None


def _kobo(text: str, unit: int) -> int | None:
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    return kobo_of(msgspec.Raw(plain.encode()), unit)
