"""Rows and dataclasses share their names: storing takes the fields, loading passes them back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, Generic, TypeVar

from sqlalchemy import BindParameter, Column, Update, bindparam, update
from sqlalchemy.dialects.postgresql import Insert, insert

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.schema.tables import metadata
from payagg.adapters.postgres.statement import Statement
from payagg.domain.checks import restore

T = TypeVar("T")


class PostgresRepository:
    """Works in the transaction of its connection."""

    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection


class RowMap(Generic[T]):
    """Maps `cls` to the table of this name: the columns in the order of its fields. `kinds` are of fields that a row
    has otherwise: an enumeration's as its word, a tuple as a list. `renamed` names the column of a field that is called
    otherwise.
    """

    def __init__(
        self, cls: type[T], table: str, renamed: Mapping[str, str] | None = None, **kinds: type[Enum | tuple[Any]]
    ) -> None:
        self._cls, self.table = cls, metadata.tables[table]
        self._fields = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]
        self._renamed = renamed or {}
        self.names = tuple(self._renamed.get(name, name) for name in self._fields)
        self.columns: tuple[Column[Any], ...] = tuple(self.table.c[name] for name in self.names)
        self._words = tuple(
            (self._fields.index(name), {None: None, **{word.value: word for word in kind}})
            for name, kind in kinds.items()
            if issubclass(kind, Enum)
        )
        self._tuples = tuple(self._fields.index(name) for name, kind in kinds.items() if kind is tuple)

    def insert(self) -> Insert:
        return insert(self.table).values(parameters(*self.names))

    def upsert(self, *key: str) -> Insert:
        """Inserts the row, or changes the one of the same `key`, which a unique index has."""
        return self.insert().on_conflict_do_update(index_elements=key, set_=parameters(*self.names))

    @property
    def listed(self) -> str:
        """The columns for a SELECT."""
        return ", ".join(f"{self.table.name}.{name}" for name in self.names)

    def query(self, rest: str) -> Statement:
        """SELECTs the columns; `rest` follows the table's name."""
        return Statement(f"SELECT {self.listed} FROM {self.table.name} {rest}")  # noqa: S608 - our own words

    def update(self, *changed: str, key: Sequence[str] = ("id",)) -> Update:
        """Sets the columns `changed` of the rows whose columns `key` are the parameters of these names."""
        is_it = (self.table.c[name] == bindparam(name) for name in key)
        return update(self.table).where(*is_it).values(parameters(*changed))

    def load(self, row: Any) -> T:
        """The object of a row whose values stand in the order of `names`. They were checked when they came in."""
        values = list(row)
        for position, words in self._words:
            if values[position] is not None:
                values[position] = words[values[position]]
        for position in self._tuples:
            values[position] = tuple(values[position])
        return restore(self._cls, dict(zip(self._fields, values, strict=True)))

    def from_row(self, row: Any | None) -> T | None:
        return None if row is None else self.load(row)

    def all(self, rows: Iterable[Any]) -> list[T]:
        return [self.load(row) for row in rows]

    def values(self, item: T) -> dict[str, Any]:
        """Column values; an enumeration becomes its value."""
        own = {**vars(item)}
        for field, column in self._renamed.items():
            own[column] = own.pop(field)
        for position, _ in self._words:
            name = self.names[position]
            own[name] = own[name] and own[name].value
        return own


def parameters(*names: str) -> dict[str, BindParameter[Any]]:
    """For VALUES or SET: each column is given as the parameter of its name."""
    return {name: bindparam(name) for name in names}
