"""Bringing a database to this version's schema."""

from pathlib import Path

from sqlalchemy import text

from payagg.adapters.postgres.connections import sync_engine
from payagg.adapters.postgres.errors import translated

HEAD = "0005"  # the newest migration that ships with this version
IS_MIGRATED = text("SELECT to_regclass('alembic_version') IS NOT NULL")
VERSIONS = text("SELECT version_num FROM alembic_version")
# Any fixed number will do; it only has to be the same in every process that migrates.
MIGRATION_LOCK = 7_242_001


def migrate(database_url: str) -> None:
    """Brings the schema up to date in one transaction; safe from several processes at once. Raises Unavailable."""
    # A server that only asks whether its schema is current does without Alembic: it is a tenth of the time to start.
    from alembic import command
    from alembic.config import Config

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
        return bool(connection.execute(IS_MIGRATED).scalar()) and set(connection.execute(VERSIONS).scalars()) == {HEAD}
