"""Where a cell is a tenant schema of Citus: what that takes otherwise than Postgres (decision 0163)."""

from alembic import op
from sqlalchemy import text

HAS_CITUS = text("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")


def on_citus() -> bool:
    """Asked of the server. SQL that is written and not run is for Postgres."""
    return not op.get_context().as_sql and bool(op.get_bind().execute(HAS_CITUS).scalar())


def unlogged() -> str:
    """`UNLOGGED `, or nothing: Citus moves a schema to another server by logical replication, which has logged tables
    alone."""
    return "" if on_citus() else "UNLOGGED "
