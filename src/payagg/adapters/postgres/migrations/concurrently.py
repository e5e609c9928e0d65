"""Indexes on tables that are being written to."""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op
from sqlalchemy import text

_INVALID = text(
    "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(current_schema()) || '.' || :name)"
)
# It waits for transactions that are older, for as long as they last, and blocks nothing while it does.
_LIMITS = ("lock_timeout", "statement_timeout")


def create_index(name: str, definition: str) -> None:
    """`definition` begins with ON. No write waits. Outside any transaction, so it must stand alone in its migration;
    what a broken run left behind, which no query would use, is built anew."""
    with _no_timeouts():
        _build(name, definition)


def replace_index(name: str, definition: str) -> None:
    """As `create_index`, and the new index takes the place of the one of this name: one of the two is always there. A
    broken run is repeated whole."""
    with _no_timeouts():
        _build(f"{name}_next", definition)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(f"ALTER INDEX {name}_next RENAME TO {name}")


def drop_index(name: str) -> None:
    """No statement waits."""
    with _no_timeouts():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def _build(name: str, definition: str) -> None:
    context = op.get_context()
    if not context.as_sql and op.get_bind().execute(_INVALID, {"name": name}).scalar():
        op.execute(f"DROP INDEX CONCURRENTLY {name}")
    op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} {definition}")


@contextmanager
def _no_timeouts() -> Iterator[None]:
    with op.get_context().autocommit_block():
        for limit in _LIMITS:
            op.execute(f"SET {limit} = 0")
        try:
            yield
        finally:
            for limit in _LIMITS:
                op.execute(f"RESET {limit}")
