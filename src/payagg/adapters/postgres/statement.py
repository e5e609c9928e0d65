"""A statement, in SQLAlchemy Core or SQL, compiled once when it is first sent."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, LiteralString

import msgspec
from sqlalchemy import CTE, ClauseElement, DateTime, Select, TextClause, literal_column, select, text
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.sql.compiler import SQLCompiler

# $1, $2 ... as the server numbers parameters, each cast to its column's type, so that every value can go as text.
# What is frozen is written as JSON, too: a read-only mapping as an object.
DIALECT = psycopg.dialect(paramstyle="numeric_dollar", json_serializer=partial(json.dumps, default=dict))  # type: ignore[no-untyped-call]
_encode = msgspec.json.Encoder().encode
_INSTANTS = re.compile(r"CAST\(:(\w+) AS timestamptz\)", re.IGNORECASE)  # what SQL tells of parameters
_LOCK = re.compile(rb"\bFOR (UPDATE|SHARE|NO KEY|KEY)")


def must_find(changed: CTE) -> Select[Any]:
    """Fails when `changed`, a writing clause with RETURNING, finds no row: a division by zero rolls its transaction
    back, so COMMIT can be sent with it."""
    return select(literal_column("1 / count(*)")).select_from(changed)


class Statement:
    """`query` is a Core clause, or SQL with `:name` for its parameters and CAST where the server cannot tell a type.

    `reads`: it neither writes nor locks, so that a transaction need not have begun for it: at READ COMMITTED each
    statement sees a snapshot of its own anyway. Told of a SELECT without a lock; `reads=True` says so of others.
    """

    def __init__(self, query: ClauseElement | LiteralString, *, reads: bool = False) -> None:
        self._clause = text(query) if isinstance(query, str) else query
        self._only_reads = reads

    @cached_property
    def _compilation(self) -> SQLCompiler:
        compiled = self._clause.compile(dialect=DIALECT)
        assert isinstance(compiled, SQLCompiler)
        return compiled

    @cached_property
    def sql(self) -> bytes:
        return str(self._compilation).encode()

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Of its span. Values are not in it, as all of them are parameters."""
        return {"db.system.name": "postgresql", "db.query.text": str(self._compilation)}

    @cached_property
    def reads(self) -> bool:
        return self._only_reads or (self.sql.lstrip().startswith(b"SELECT") and not _LOCK.search(self.sql))

    @cached_property
    def _parameters(self) -> tuple[list[str], dict[str, Any], list[tuple[int, Callable[[Any], Any]]]]:
        """The names in order, the constants among them, and where a value is processed."""
        names = self._compilation.positiontup or []
        binds = [self._compilation.binds[name] for name in names]
        constants = {name: bind.effective_value for name, bind in zip(names, binds, strict=True) if not bind.required}
        instants = _INSTANTS.findall(str(self._clause)) if isinstance(self._clause, TextClause) else ()
        kinds = [DateTime() if name in instants else bind.type for name, bind in zip(names, binds, strict=True)]
        processors = [(place, process) for place, kind in enumerate(kinds) if (process := _processor(kind))]
        return names, constants, processors

    def order_values(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of $1, $2 ...; raises KeyError for one that is missing."""
        names, constants, processors = self._parameters
        given = {**constants, **values} if constants else values
        ordered = [given[name] for name in names]
        for place, process in processors:
            ordered[place] = process(ordered[place])
        return ordered


def _processor(kind: Any) -> Callable[[Any], Any] | None:
    """What is done to a value of this type before the driver gets it: by SQLAlchemy, for example writing JSON, and to
    an instant here, as the driver writes one in ten times the instructions."""
    if isinstance(kind, DateTime):
        return lambda at: None if at is None else _encode(at)[1:-1].decode()
    process: Callable[[Any], Any] | None = kind.dialect_impl(DIALECT).bind_processor(DIALECT)
    return process
