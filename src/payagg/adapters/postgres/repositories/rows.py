"""Rows and dataclasses share their names, so storing is taking fields and loading is giving them back."""

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, Table

from payagg.domain.checks import restored

T = TypeVar("T")


class RowMap(Generic[T]):
    """How `cls` lies in `table`: the columns in the order of its fields, `words` turning words into enumerations.

    `renamed` names the column of a field that is called otherwise."""

    def __init__(
        self, cls: type[T], table: Table, renamed: Mapping[str, str] | None = None, **words: type[Enum]
    ) -> None:
        self._cls = cls
        self._fields = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]
        self.names = tuple((renamed or {}).get(name, name) for name in self._fields)
        self.columns: tuple[Column[Any], ...] = tuple(table.c[name] for name in self.names)
        self._words = tuple(
            (self._fields.index(name), {word.value: word for word in kind}) for name, kind in words.items()
        )

    def load(self, row: Any) -> T:
        """The object of a row whose values stand in the order of `names`. They were checked when they came in."""
        values = list(row)
        for position, words in self._words:
            values[position] = words[values[position]]
        return restored(self._cls, dict(zip(self._fields, values, strict=True)))

    def values(self, item: T) -> dict[str, Any]:
        """Column values; an enumeration becomes its word."""
        return {name: stored(getattr(item, field)) for name, field in zip(self.names, self._fields, strict=True)}


def stored(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
