"""Payments as CSV (RFC 4180, UTF-8), for machines and for spreadsheets."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

import msgspec

from payagg.application.schemas.payments import PaymentDetail
from payagg.domain.adjustment import AdjustmentTotal
from payagg.domain.payment_search import PaymentTotal

COLUMNS = PaymentDetail.__struct_encode_fields__
TOTAL_COLUMNS = ("date", "status", "adjustment", "count", "amount", "fee", "netAmount", "withFee", "effect")
# A spreadsheet reads a cell that begins with one of these as a formula, some in full-width form too; and characters
# that it strips first or reads as the end of the previous cell (OWASP, "CSV injection").
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n", "\v", "\ufeff", ";=")  # noqa: RUF001


def lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """The rows, each ending with CRLF. Every CSV is written here."""
    written = StringIO(newline="")
    csv.writer(written).writerows([cell(value) for value in row] for row in rows)
    return written.getvalue().encode()


def cells(payment: PaymentDetail) -> list[Any]:
    """A payment's values in the order of COLUMNS, in the words of the JSON answer."""
    shown = msgspec.to_builtins(payment)
    return [shown[name] for name in COLUMNS]


def total_cells(total: PaymentTotal | AdjustmentTotal) -> list[Any]:
    """A total's values in the order of TOTAL_COLUMNS: a total of payments has `status`, one of adjustments has
    `adjustment`, the kind; the other columns are empty. Sums in kobo."""
    if isinstance(total, PaymentTotal):
        known = [total.fee, total.net_amount, total.with_fee]
        return [total.day, total.status.value, None, total.count, total.amount, *known, None]
    return [total.day, None, total.kind.value, total.count, total.amount, None, None, None, total.effect]


def cell(value: Any) -> str:
    """A value as text; a formula gets a leading apostrophe, which spreadsheets do not show."""
    if isinstance(value, str):
        return "'" + value if value.startswith(_FORMULA) else value
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return "" if value is None else str(value)
