"""Statements as CSV files: the providers' own exports, columns by name."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from payagg.adapters.providers.values import kobo_of
from payagg.application.ports.providers import LinePage
from payagg.domain.errors import Refusal, invalid
from payagg.domain.reconciliation import ProviderLine

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


def read(content: bytes, shape: StatementShape, line_of: LineOf) -> LinePage:
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
