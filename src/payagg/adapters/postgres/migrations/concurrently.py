"""Indexes on tables that are being written to."""

from alembic import op
from sqlalchemy import text

_INVALID = text("SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")


def create_index(name: str, definition: str) -> None:
    """`definition` begins with ON. No write waits. Outside any transaction, so it must stand alone in its migration;
    what a broken run left behind, which no query would use, is built anew."""
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        # It waits for transactions that are older, and blocks nothing while it does.
        connection.execute(text("SET lock_timeout = 0"))
        try:
            if connection.execute(_INVALID, {"name": name}).scalar():
                connection.execute(text(f"DROP INDEX CONCURRENTLY {name}"))
            connection.execute(text(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} {definition}"))
        finally:
            connection.execute(text("RESET lock_timeout"))
