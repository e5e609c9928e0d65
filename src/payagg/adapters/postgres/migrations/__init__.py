"""Which schema this release works on. How a database is brought there: upgrade.py."""

from collections.abc import Sequence

from sqlalchemy import text

from payagg.adapters.postgres.connections import sync_engine
from payagg.adapters.postgres.errors import translate_errors

HEAD = "0031"  # the newest migration that ships with this version
# In our own schema: another cell's may be on the search path too.
IS_MIGRATED = text("SELECT to_regclass(quote_ident(current_schema()) || '.alembic_version') IS NOT NULL")
VERSIONS = text("SELECT version_num FROM alembic_version")


def fits(versions: Sequence[str]) -> bool:
    """Whether this release may work on a schema that has been brought to `versions`: its own, or one after it. The
    migrations of the next release only add, and come before its servers do."""
    return len(versions) == 1 and versions[0] >= HEAD


def is_current(database_url: str) -> bool:
    """Whether this release may work on the database's schema. Raises Unavailable."""
    with translate_errors(), sync_engine(database_url) as engine, engine.connect() as connection:
        is_migrated = bool(connection.execute(IS_MIGRATED).scalar())
        return is_migrated and fits(connection.execute(VERSIONS).scalars().all())
