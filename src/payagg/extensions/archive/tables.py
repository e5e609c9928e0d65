"""What the archive holds: the tables, their columns, and the manifest of a part.

They hold no payer's data and no merchant's text, so nobody has to be erased from a file: payer, metadata, addresses,
hand-offs and idempotency keys stay in the database, under its own retention.

They are Parquet files, by pyarrow: zstd, a checksum for each page, row groups of a bounded number of rows. pyarrow
comes with the extra `archive` and is imported on first use, which raises when it is missing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any

from msgspec import Struct

from payagg.application.ports.payments import ProviderCall
from payagg.domain.archived import ArchivedPayment
from payagg.domain.attempt import Attempt, AttemptState, HandOff, HandOffKind
from payagg.domain.checks import restore
from payagg.domain.payment import Status, Transition, Trigger
from payagg.extras import needing

Columns = Mapping[str, type]
Row = tuple[Any, ...]
History = dict[str, list[Row]]  # by table; values in column order, rows sorted by the table's key

# Every first column is the reference. An enumeration is its word, an instant UTC with microseconds.
TABLES: Mapping[str, Columns] = {
    "payments": {
        "reference": str,
        "business_id": str,
        "environment": str,
        "amount": int,  # kobo
        "currency": str,
        "status": str,
        "gateway": str,
        "failure_reason": str,
        "sequence": int,
        "created_at": datetime,
        "updated_at": datetime,
        "expires_at": datetime,
        "settled_at": datetime,
        "is_test": bool,
        "api_key_id": str,
        "fee": int,  # kobo
        "net_amount": int,  # kobo
        "has_adjustments": bool,
    },
    "transitions": {
        "reference": str,
        "sequence": int,
        "from_status": str,
        "to_status": str,
        "trigger": str,
        "actor": str,
        "reason": str,
        "at": datetime,
    },
    "attempts": {
        "reference": str,
        "number": int,
        "gateway_id": str,
        "gateway": str,
        "provider_reference": str,
        "state": str,
        "scenario": str,
        "hand_off_kind": str,
        "created_at": datetime,
        "handed_off_at": datetime,
        "asks": int,
        "last_ask_at": datetime,
        "last_decline": str,
        "account": str,
        "confirmed_at": datetime,
        "provider_id": str,
        "channel": str,
        "fee": int,  # kobo
        "paid_at": datetime,
    },
    "provider_calls": {
        "reference": str,
        "id": str,
        "attempt": int,
        "gateway": str,
        "operation": str,
        "result": str,
        "word": str,
        "duration_ms": int,
        "actor": str,
        "at": datetime,
    },
}
MANIFEST = "manifest.json"
VERSION = 1


class ArchivedObject(Struct, rename="camel", frozen=True):
    name: str
    rows: int
    bytes: int
    sha256: str


class Manifest(Struct, rename="camel", frozen=True):
    """The content of a part: `manifest.json` in its folder."""

    version: int
    day: str
    first_reference: str
    last_reference: str
    payments: int
    started_at: datetime
    objects: dict[str, ArchivedObject]  # by table


def by_payment(history: Mapping[str, Iterable[Row]], references: Iterable[str]) -> dict[str, History]:
    """The same rows, by reference."""
    own: dict[str, History] = {reference: {table: [] for table in TABLES} for reference in references}
    for table, rows in history.items():
        for row in rows:
            own[row[0]][table].append(row)
    return own


def remaining(reference: str, part: int, own: History) -> ArchivedPayment:
    """The part of a payment that stays in the database."""
    attempts = [named_columns("attempts", row) for row in own["attempts"]]
    transitions = [named_columns("transitions", row) for row in own["transitions"]]
    moved = (Status.SUCCESS.value, Status.REVERSED.value)
    paid = next((one["reason"] for one in transitions if one["to_status"] in moved), None)
    tried = tuple((one["gateway"], AttemptState(one["state"]), one["provider_id"]) for one in attempts)
    return ArchivedPayment(reference, part, tried, paid)


def transitions_of(rows: Sequence[Row]) -> list[Transition]:
    words: dict[str, Any] = {"from_status": Status, "to_status": Status, "trigger": Trigger}
    return [
        restore(Transition, {name: words[name](value) if name in words else value for name, value in own.items()})
        for own in (named_columns("transitions", row) for row in rows)
    ]


def attempts_of(rows: Sequence[Row]) -> list[Attempt]:
    """The attempts as archived: without the hand-off's address, token and lease."""
    unknown = dict.fromkeys(Attempt.__dataclass_fields__)
    found = []
    for own in (named_columns("attempts", row) for row in rows):
        kind = own.pop("hand_off_kind")
        hand_off = restore(HandOff, {"kind": HandOffKind(kind), "checkout_url": ""}) if kind else None
        fields = {**unknown, **own, "state": AttemptState(own["state"]), "hand_off": hand_off}
        found.append(restore(Attempt, fields))
    return found


def calls_of(rows: Sequence[Row]) -> list[ProviderCall]:
    return [ProviderCall(**named_columns("provider_calls", row)) for row in rows]


def named_columns(table: str, row: Row) -> dict[str, Any]:
    return dict(zip(TABLES[table], row, strict=True))


SUFFIX = ".parquet"
GROUP = 10_000  # rows


def file_of(rows: Sequence[Row], columns: Columns) -> bytes:
    """A whole file of these rows, in their order; of none it has no row group, which `read_rows` relies on."""
    arrow, parquet = _arrow()
    schema, content = arrow.schema(_fields(columns)), BytesIO()
    with parquet.ParquetWriter(
        content, schema, compression="zstd", write_page_checksum=True, store_schema=False
    ) as writer:
        if rows:
            by_column = zip(zip(*rows, strict=True), schema, strict=True)
            arrays = [arrow.array(values, type=own.type) for values, own in by_column]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema), row_group_size=GROUP)
    return content.getvalue()


def read_rows(content: bytes, columns: Columns, reference: str | None = None) -> Iterator[Row]:
    """All rows in order, a row group at a time; of one payment only from the groups that may hold its reference. Raises
    ValueError or OSError for a damaged file or other columns."""
    arrow, parquet = _arrow()
    with parquet.ParquetFile(arrow.BufferReader(content), page_checksum_verification=True) as file:
        if not file.schema_arrow.equals(arrow.schema(_fields(columns))):
            raise ValueError("it has other columns")
        for number in range(file.num_row_groups):
            bounds = file.metadata.row_group(number).column(0).statistics
            if reference is not None and not bounds.min <= reference <= bounds.max:
                continue
            table = file.read_row_group(number)
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                if reference is None or row[0] == reference:
                    yield row


@cache
def _arrow() -> tuple[Any, Any]:
    with needing("archive", "payagg archive"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def _fields(columns: Columns) -> list[Any]:
    arrow, _ = _arrow()
    types = {str: arrow.string(), int: arrow.int64(), bool: arrow.bool_(), datetime: arrow.timestamp("us", "UTC")}
    return [arrow.field(name, types[kind], nullable=name != "reference") for name, kind in columns.items()]
