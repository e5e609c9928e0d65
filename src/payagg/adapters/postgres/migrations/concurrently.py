"""Indexes on tables that are being written to."""

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
    context = op.get_context()
    with context.autocommit_block():
        for limit in _LIMITS:
            op.execute(f"SET {limit} = 0")
        try:
            if not context.as_sql and op.get_bind().execute(_INVALID, {"name": name}).scalar():
                op.execute(f"DROP INDEX CONCURRENTLY {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} {definition}")
        finally:
            for limit in _LIMITS:
                op.execute(f"RESET {limit}")
