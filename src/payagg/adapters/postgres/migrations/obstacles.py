"""The sessions that block a migration, seen from a second connection."""

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import psycopg

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
