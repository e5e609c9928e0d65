"""Bringing a database to this version's schema."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from payagg.adapters.postgres.connections import sync_engine
from payagg.adapters.postgres.errors import translated

# Any fixed number will do; it only has to be the same in every process that migrates.
MIGRATION_LOCK = 7_242_001


@cache
def heads() -> frozenset[str]:
    """The newest migration that ships with this version."""
    return frozenset(ScriptDirectory(str(Path(__file__).parent)).get_heads())


def migrate(database_url: str) -> None:
    """Brings the schema up to date in one transaction; safe from several processes at once. Raises Unavailable."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with translated(), sync_engine(database_url) as engine, engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        # Running servers must not queue behind a migration that waits for one of them.
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_current(database_url: str) -> bool:
    """Whether the database has exactly this version's schema. Raises Unavailable."""
    with translated(), sync_engine(database_url) as engine, engine.connect() as connection:
        return set(MigrationContext.configure(connection).get_current_heads()) == heads()
