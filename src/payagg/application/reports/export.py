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
# A spreadsheet takes a cell that begins with one of these for a formula, some of them in their full-width form too; and
# what it drops before it looks, or takes for the end of the cell before (OWASP, "CSV injection").
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n", "\v", "\ufeff", ";=")  # noqa: RUF001


def lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """The rows, each ending with CRLF. Every CSV of ours is written here."""
    written = StringIO(newline="")
    csv.writer(written).writerows([cell(value) for value in row] for row in rows)
    return written.getvalue().encode()


def cells(payment: PaymentDetail) -> list[Any]:
    """A payment's values in the order of COLUMNS, in the words of the JSON answer."""
    shown = msgspec.to_builtins(payment)
    return [shown[name] for name in COLUMNS]


def total_cells(total: PaymentTotal | AdjustmentTotal) -> list[Any]:
    """A total's values in the order of TOTAL_COLUMNS: `status` stands where payments were added up, `adjustment`, the
    kind, where adjustments were; what one of them does not have is empty. Sums in kobo."""
    if isinstance(total, PaymentTotal):
        known = [total.fee, total.net_amount, total.with_fee]
        return [total.day, total.status.value, None, total.count, total.amount, *known, None]
    return [total.day, None, total.kind.value, total.count, total.amount, None, None, None, total.effect]


def cell(value: Any) -> str:
    """A value as text; one that a spreadsheet would run gets an apostrophe before it, which it does not show."""
    if isinstance(value, str):
        return "'" + value if value.startswith(_FORMULA) else value
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return "" if value is None else str(value)
