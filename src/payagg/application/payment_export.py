"""Payments as CSV (RFC 4180, UTF-8), for machines and for spreadsheets."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

import msgspec

from payagg.application.schemas.payments import PaymentDetail

COLUMNS = PaymentDetail.__struct_encode_fields__
# A spreadsheet takes a cell that begins with one of these for a formula, some of them in their full-width form too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


def lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """The rows, each ending with CRLF."""
    written = StringIO(newline="")
    csv.writer(written).writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue().encode()


def cells(payment: PaymentDetail) -> list[Any]:
    """A payment's values in the order of COLUMNS, in the words of the JSON answer."""
    shown = msgspec.to_builtins(payment)
    return [shown[name] for name in COLUMNS]


def _cell(value: Any) -> str:
    """Text; one that would be a formula gets an apostrophe before it, which spreadsheets do not show."""
    if isinstance(value, dict):
        value = msgspec.json.encode(value).decode()
    text = "" if value is None else str(value)
    return "'" + text if isinstance(value, str) and text.startswith(_FORMULA) else text
