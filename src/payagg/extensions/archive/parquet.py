"""Rows as Parquet files, by pyarrow: zstd, a checksum for each page, row groups of a bounded number of rows.

pyarrow comes with the extra `archive` and is imported on first use, which raises when it is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any

from payagg.extensions.archive.tables import Row
from payagg.extras import needing

SUFFIX = ".parquet"
GROUP = 10_000  # rows


class ParquetFile:
    """One file, written in memory: `add` rows in their order, then `finish`."""

    def __init__(self, columns: Mapping[str, type]) -> None:
        self._arrow, self._parquet = _arrow()
        self._schema = self._arrow.schema(_fields(columns))
        self._content = BytesIO()
        self._writer = self._parquet.ParquetWriter(
            self._content, self._schema, compression="zstd", write_page_checksum=True, store_schema=False
        )
        self._waiting: list[Row] = []
        self.rows = 0

    def add(self, rows: Sequence[Row]) -> None:
        self._waiting += rows
        self.rows += len(rows)
        while len(self._waiting) >= GROUP:
            self._write(self._waiting[:GROUP])
            del self._waiting[:GROUP]

    def finish(self) -> bytes:
        """The whole file."""
        if self._waiting:
            self._write(self._waiting)
        self._writer.close()
        return self._content.getvalue()

    def _write(self, rows: Sequence[Row]) -> None:
        columns = zip(zip(*rows, strict=True), self._schema, strict=True)
        arrays = [self._arrow.array(values, type=own.type) for values, own in columns]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))


def read_rows(content: bytes, columns: Mapping[str, type], reference: str | None = None) -> Iterator[Row]:
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


def _fields(columns: Mapping[str, type]) -> list[Any]:
    arrow, _ = _arrow()
    types = {str: arrow.string(), int: arrow.int64(), bool: arrow.bool_(), datetime: arrow.timestamp("us", "UTC")}
    return [arrow.field(name, types[kind], nullable=name != "reference") for name, kind in columns.items()]
