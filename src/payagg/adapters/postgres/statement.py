"""A statement, in SQLAlchemy Core or SQL, compiled once when it is first sent."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, LiteralString

from sqlalchemy import CTE, ClauseElement, Select, func, literal_column, select, text
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.sql.compiler import SQLCompiler

# $1, $2 ... as the server numbers parameters, each cast to its column's type, so that every value can go as text.
DIALECT = psycopg.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_REQUIRED: Any = object()
_LOCK = b" FOR "  # FOR UPDATE and its kin


def must_find(changed: CTE) -> Select[Any]:
    """Fails when `changed`, a writing clause with RETURNING, finds no row: a division by zero rolls its transaction
    back, so COMMIT can be sent with it."""
    return select(literal_column("1") // func.count()).select_from(changed)


class Statement:
    """`query` is a Core clause, or SQL with `:name` for its parameters and CAST where the server cannot tell a type.

    `reads`: it neither writes nor locks, so that a transaction need not have begun for it: at READ COMMITTED each
    statement sees a snapshot of its own anyway. Told of a SELECT without a lock; `reads=True` says so of SQL.
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
        is_plain = isinstance(self._clause, Select) and not self.sql.startswith(b"WITH ")
        return self._only_reads or (is_plain and _LOCK not in self.sql)

    @cached_property
    def _parameters(self) -> tuple[tuple[str, Any, Callable[[Any], Any] | None], ...]:
        return tuple(
            (name, _REQUIRED if parameter.required else parameter.effective_value, _processor(parameter.type))
            for name in self._compilation.positiontup or ()
            for parameter in (self._compilation.binds[name],)
        )

    def order_values(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of $1, $2 ...; raises KeyError for one that is missing."""
        ordered = []
        for name, constant, process in self._parameters:
            value = values[name] if constant is _REQUIRED else values.get(name, constant)
            ordered.append(value if process is None else process(value))
        return ordered


def _processor(kind: Any) -> Callable[[Any], Any] | None:
    """What SQLAlchemy does to a value of this type before the driver gets it, for example writing JSON."""
    process: Callable[[Any], Any] | None = kind.dialect_impl(DIALECT).bind_processor(DIALECT)
    return process
