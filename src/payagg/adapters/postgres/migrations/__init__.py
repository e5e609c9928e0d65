"""Bringing a database to this version's schema."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, event, text

from payagg.adapters.postgres.connections import sync_engine
from payagg.adapters.postgres.errors import translated

HEAD = "0013"  # the newest migration that ships with this version
IS_MIGRATED = text("SELECT to_regclass('alembic_version') IS NOT NULL")
VERSIONS = text("SELECT version_num FROM alembic_version")
# Any fixed number will do; it only has to be the same in every process that migrates.
MIGRATION_LOCK = 7_242_001
LOCK = text("SELECT pg_try_advisory_xact_lock(:lock)")
LOCK_EVERY = 0.1  # seconds


def migrate(database_url: str) -> None:
    """Brings the schema up to date, each migration in a transaction of its own; safe from several processes at once,
    and to be repeated after a failure. Raises Unavailable."""
    # A server that only asks whether its schema is current does without Alembic: it is a tenth of the time to start.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with translated(), sync_engine(database_url) as engine, _alone(engine), engine.connect() as connection:
        # Running servers must not queue behind a migration that waits for one of them.
        event.listen(connection, "begin", lambda begun: begun.exec_driver_sql("SET LOCAL lock_timeout = '10s'"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Keeps every other process that migrates away. One that waits asks again and again: inside a statement that waits
    it would hold a snapshot, and an index that is built concurrently waits for every snapshot."""
    with engine.connect() as connection:
        while not connection.execute(LOCK, {"lock": MIGRATION_LOCK}).scalar():
            connection.rollback()
            time.sleep(LOCK_EVERY)
        # However long it takes. This statement also ends the portal of the last one, and with it its snapshot.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        yield


def fits(versions: Sequence[str]) -> bool:
    """Whether this release may work on a schema that has been brought to `versions`: its own, or one after it. The
    migrations of the next release only add, and come before its servers do."""
    return len(versions) == 1 and versions[0] >= HEAD


def is_current(database_url: str) -> bool:
    """Whether this release may work on the database's schema. Raises Unavailable."""
    with translated(), sync_engine(database_url) as engine, engine.connect() as connection:
        is_migrated = bool(connection.execute(IS_MIGRATED).scalar())
        return is_migrated and fits(connection.execute(VERSIONS).scalars().all())
