"""Rows and dataclasses share their names: storing takes the fields, loading passes them back."""

# ruff: noqa: S608 - our own words

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Generic, TypeVar

from payagg.adapters.postgres.pipeline import StatementConnection
from payagg.adapters.postgres.schema.tables import COLUMNS
from payagg.adapters.postgres.statement import Statement
from payagg.domain.checks import restore

T = TypeVar("T")


class PostgresRepository:
    """Works in the transaction of its connection."""

    def __init__(self, connection: StatementConnection) -> None:
        self._connection = connection


class RowMap(Generic[T]):
    """Maps `cls` to `table`: the columns in the order of its fields. `kinds` are of fields that a row has otherwise: an
    enumeration's as its word, a tuple as a list. `renamed` names the column of a field that is called otherwise.
    """

    def __init__(
        self, cls: type[T], table: str, renamed: Mapping[str, str] | None = None, **kinds: type[Enum | tuple[Any]]
    ) -> None:
        self._cls, self._table = cls, table
        self._fields = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]
        self._renamed = renamed or {}
        self.names = tuple(self._renamed.get(name, name) for name in self._fields)
        self.listed = ", ".join(f"{table}.{name}" for name in self.names)
        self._words = tuple(
            (self._fields.index(name), {None: None, **{word.value: word for word in kind}})
            for name, kind in kinds.items()
            if issubclass(kind, Enum)
        )
        self._tuples = tuple(self._fields.index(name) for name, kind in kinds.items() if kind is tuple)

    def query(self, rest: str) -> Statement:
        """SELECTs the columns; `rest` follows the table's name."""
        return Statement(f"SELECT {self.listed} FROM {self._table} {rest}")

    def insert(self, rest: str = "") -> Statement:
        return Statement(f"{insert(self._table, *self.names)} {rest}")

    def upsert(self, *key: str) -> Statement:
        """Inserts the row, or changes the one of the same `key`, which a unique index has."""
        changed = ", ".join(f"{name} = excluded.{name}" for name in self.names)
        return self.insert(f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}")

    def update(self, *changed: str, where: str = "id = :id") -> str:
        """Sets the columns `changed`."""
        return f"UPDATE {self._table} SET {assigned(self._table, *changed)} WHERE {where}"

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
        for position in self._tuples:
            own[self.names[position]] = list(own[self.names[position]])
        return own


def parameter(table: str, name: str) -> str:
    """A column's value as the parameter of its name."""
    kind = COLUMNS[table][name]
    return f"CAST(:{name} AS {kind})" if kind in ("timestamptz", "jsonb") else f":{name}"


def insert(table: str, *names: str) -> str:
    given = ", ".join(parameter(table, name) for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({given})"


def assigned(table: str, *names: str) -> str:
    """For SET."""
    return ", ".join(f"{name} = {parameter(table, name)}" for name in names)
