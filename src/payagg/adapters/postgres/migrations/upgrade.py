"""Migrates a database to this version's schema beside running servers: what that would do, and who is in the way."""

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from payagg.adapters.postgres.connections import OWN_SCHEMA, sync_connection, sync_engine
from payagg.adapters.postgres.errors import translate_errors
from payagg.adapters.postgres.migrations import HEAD, IS_MIGRATED, VERSIONS

LOOK_SECONDS = 0.2
TELL_SECONDS = 5.0
QUERY_SHOWN = 80  # characters
BLOCKERS = """
SELECT blocker, application_name, usename, extract(epoch FROM clock_timestamp() - xact_start)::float, query
FROM (SELECT DISTINCT unnest(pg_blocking_pids(%s)) AS blocker) AS b LEFT JOIN pg_stat_activity ON pid = blocker
ORDER BY xact_start NULLS LAST
"""
BUILDING = "SELECT phase, blocks_done, blocks_total FROM pg_stat_progress_create_index WHERE pid = %s"


class MigrationBlocked(Exception):
    """A migration got no lock in all its attempts; it changed nothing. The message is one line."""


class ObstacleWatch:
    """Watches the session `pid` while the block lasts. `found` is the last session seen blocking it, in words, or
    empty. A long wait is reported at intervals."""

    def __init__(self, connect: Callable[[], "psycopg.Connection[Any]"], pid: int, tell: Callable[[str], None]) -> None:
        self.found = ""
        self._connect = connect
        self._pid = pid
        self._tell = tell
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "ObstacleWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        # The migration continues without it.
        with suppress(psycopg.Error), self._connect() as connection:
            connection.autocommit = True
            looks = 0
            while not self._is_over.wait(LOOK_SECONDS):
                looks += 1
                blockers = connection.execute(BLOCKERS, [self._pid]).fetchall()
                if blockers:
                    self.found = "; ".join(describe_session(*blocker) for blocker in blockers)
                if looks * LOOK_SECONDS >= TELL_SECONDS:
                    looks = 0
                    for phase, done, total in connection.execute(BUILDING, [self._pid]):
                        self._tell(f"  {phase}" + (f": {done} of {total} blocks" if total else ""))
                    if blockers:
                        self._tell(f"  waits for {self.found}")


def describe_session(
    pid: int, application: str | None, role: str | None, seconds: float | None, query: str | None
) -> str:
    """`pid 4711 (psql as ada, for 312 s: SELECT ...)`; of another role's session Postgres shows little."""
    if not pid:
        return "a prepared transaction (see pg_prepared_xacts)"
    who = f"{application or 'unnamed'} as {role or 'another role'}"
    since = f", for {seconds:.0f} s" if seconds is not None else ""
    text = " ".join((query or "").split())
    shown = text if len(text) <= QUERY_SHOWN else text[:QUERY_SHOWN] + " ..."
    return f"pid {pid} ({who}{since}{shown and ': ' + shown})"


# Any fixed number, the same in every process that migrates the schema.
MIGRATION_LOCK = 7_242_001
LOCK = text(f"SELECT pg_try_advisory_xact_lock(:lock, {OWN_SCHEMA})")
LOCK_EVERY = 0.1  # seconds
# Whoever comes after a migration that waits for a lock waits behind it: so it waits for a second, steps back and lets
# them through. A role may have limits for its servers; a migration may take longer than they. Of the search path our
# own schema alone: what another cell has is not taken for ours, and a function that keeps the path works for any role.
LIMITS = (
    "SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = 0;"
    " SELECT set_config('search_path', quote_ident(current_schema()), true)"
)
TRIES, PAUSE_SECONDS = 30, 4.0
REPEATABLE = {"55P03", "40P01"}  # no lock in time; a deadlock with a server's transaction


def _silent(_: str) -> None:
    """The default progress: none."""


def migrate(
    database_url: str,
    *,
    to: str = HEAD,
    tell: Callable[[str], None] = _silent,
    tries: int = TRIES,
    pause: float = PAUSE_SECONDS,
) -> None:
    """Brings the schema to the revision `to`, each migration in a transaction of its own; safe from several processes
    at once, and to be repeated after a failure. `tell` is called with lines of progress. A schema that is at `to` or
    beyond stays. Raises Unavailable, and MigrationBlocked after so many `tries` with pauses of `pause` seconds."""
    config = _config()
    with translate_errors(), sync_engine(database_url) as engine, _alone(engine, tell):
        for step in _pending(engine, config, to):
            tell(f"{step.revision}: {_subject(step)}")
            began = time.monotonic()
            for number in range(1, tries + 1):
                in_the_way = _try_migration(database_url, engine, config, step.revision, tell)
                if in_the_way is None:
                    break
                if number == tries:
                    raise MigrationBlocked(
                        f"Migration {step.revision} got no lock in {tries} tries and changed nothing: {in_the_way} is "
                        f"in the way. The schema is at {step.down_revision or 'its beginning'}; run it again later."
                    )
                tell(f"  try {number} of {tries}: {in_the_way} is in the way; again in {pause:g} s")
                time.sleep(pause)
            tell(f"  done in {time.monotonic() - began:.1f} s")


def plan_migrations(database_url: str) -> list[tuple[str, str, str]]:
    """Revision, subject and SQL of each migration that `migrate` would run. Raises Unavailable."""
    config = _config()
    with translate_errors(), sync_engine(database_url) as engine:
        steps = list(_pending(engine, config, HEAD))
    plans = []
    for step in steps:
        config.output_buffer = io.StringIO()
        command.upgrade(config, f"{step.down_revision or 'base'}:{step.revision}", sql=True)
        plans.append((step.revision, _subject(step), config.output_buffer.getvalue().strip()))
    return plans


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def _pending(engine: Engine, config: Config, to: str) -> Iterator[Script]:
    """The migrations from the database's revision to `to`, in order."""
    with engine.connect() as connection:
        versions = connection.execute(VERSIONS).scalars().all() if connection.execute(IS_MIGRATED).scalar() else []
    current = max(versions, default=None)
    # A revision ahead may be unknown to this release.
    if current is not None and current >= to:
        return iter(())
    return reversed(list(ScriptDirectory.from_config(config).iterate_revisions(to, current or "base")))


def _subject(step: Script) -> str:
    return " ".join(step.doc.split()).rstrip(".")


def _try_migration(
    database_url: str, engine: Engine, config: Config, revision: str, tell: Callable[[str], None]
) -> str | None:
    """None when the migration is done; the blocker when it got no lock and was rolled back."""
    with engine.connect() as connection:
        pid = connection.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
        event.listen(connection, "begin", _limit)
        config.attributes["connection"] = connection
        with ObstacleWatch(lambda: sync_connection(database_url), pid, tell) as watch:
            try:
                command.upgrade(config, revision)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in REPEATABLE:
                    raise
                return watch.found or "a transaction that is over"
    return None


def _limit(begun: Connection) -> Any:
    return begun.exec_driver_sql(LIMITS)


@contextmanager
def _alone(engine: Engine, tell: Callable[[str], None]) -> Iterator[None]:
    """Excludes every other migrating process. A waiting one polls: a blocking statement would hold a snapshot, and an
    index built concurrently waits for every snapshot."""
    with engine.connect() as connection:
        is_told = False
        while not connection.execute(LOCK, {"lock": MIGRATION_LOCK}).scalar():
            connection.rollback()
            if not is_told:
                tell("Another process migrates this schema: waiting until it is done.")
                is_told = True
            time.sleep(LOCK_EVERY)
        # Without a timeout. This statement also closes the last one's portal, and with it its snapshot.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        yield
