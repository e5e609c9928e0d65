"""Partitions of events and their metadata: one for each week of the payments' days, made ahead and dropped whole.

What no partition takes lies in the default ones, `events_other` and `event_metadata_other`, and goes from there row by
row. Connections of their own and no pool: these statements are few, slow beside all others, and lock tables. They wait
for a lock for less than Postgres takes to look for a deadlock, so that it is always they who step back.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import psycopg
import structlog
from psycopg import sql

from payagg.adapters.postgres.connections import OWN_SCHEMA, sync_connection
from payagg.adapters.postgres.errors import translate_errors
from payagg.adapters.postgres.repositories.webhook_events import id_at
from payagg.adapters.postgres.week import Week
from payagg.application.ports.outside import Unavailable

# In this order they are locked, which is the one in which an event is stored.
TABLES = ("event_metadata", "events")
AHEAD = 5  # weeks, the next ones: retention has emptied what lies in the way of more by then (see `make`)
# Until then rows of a week may be refused; see `make_patiently`.
NOT_SOON = timedelta(days=2)
LOOKED_THROUGH = 64 * 2**20  # bytes of a default partition that may be read while it is locked: a tenth of a second
MOVED_MAX = 10_000  # events that stay when their week goes
TRIES, PAUSE_SECONDS = 30, 4.0
PATIENCE_SECONDS = 120.0  # for all weeks together; more than their statements may take
# Any fixed number will do; it only has to be the same in every process.
LOCK = 7_242_002  # with the schema's
LIMITS = "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '6s'; SET LOCAL enable_seqscan = off"
NAMES = """
SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass ORDER BY 1
"""
PROOF = "SELECT convalidated FROM pg_constraint WHERE conrelid = %s::regclass AND conname = %s"
# An event stays for as long as it is young or has a delivery. A payment's metadata stays with any of its events.
STAY = """
SELECT v.reference FROM businesses b CROSS JOIN (VALUES ('SANDBOX'), ('LIVE')) AS environments(environment)
CROSS JOIN LATERAL (
    SELECT v.reference FROM {events} v
    WHERE v.business_id = b.id AND v.environment = environments.environment AND v.id >= {before}
    ORDER BY v.id LIMIT {most}
) v
UNION SELECT d.reference FROM deliveries d WHERE d.reference >= {first} AND d.reference < {end}
LIMIT {most}
"""
_log = structlog.get_logger("payagg.partitions")


def weeks(connection: "psycopg.Connection[Any]") -> list[Week]:
    """Those that have partitions, first one first."""
    found = (Week.from_partition(name) for (name,) in connection.execute(NAMES))
    return sorted(week for week in found if week is not None)


def make(database_url: str, prefix: str, now: datetime) -> int:
    """Makes what is lacking of this week and the next AHEAD, and says how many weeks that were; safe in several
    processes at once. Raises Unavailable, after which doing it again is safe.

    A week for which the default partition has rows stays there. So do all while that is too large to be read while it
    is locked: `make_patiently` has another way, and retention empties it. Where the role may make no tables, a line in
    the log says so and `payagg migrate` is to be run now and then.
    """
    with _connect(database_url) as connection:
        try:
            return sum(_make_partitions(connection, week) for week in _weeks_wanted(connection, prefix, now))
        except psycopg.errors.InsufficientPrivilege:
            _log.warning("this role may make no partitions: run `payagg migrate` with the one that owns the tables")
            return 0


def make_patiently(
    database_url: str, prefix: str, now: datetime, tell: Callable[[str], None], *, pause: float = PAUSE_SECONDS
) -> int:
    """As `make`, but however large the default partition is: it is read beside those who use it, under a CHECK that
    keeps the weeks' rows out meanwhile. None of those weeks begins soon, so nothing is refused. For `payagg migrate`,
    which goes to Postgres itself, as the lock lasts for several transactions."""
    with _connect(database_url) as connection:
        if connection.execute(f"SELECT pg_try_advisory_lock(%s, {OWN_SCHEMA})", [LOCK]).fetchone() != (True,):
            return 0
        made = 0
        lacking = _weeks_wanted(connection, prefix, now)
        later = [week for week in lacking if week.monday > (now + NOT_SOON).date()]
        large = [table for table in TABLES if later and _is_large(connection, table)]
        if large:
            tell(f"Looking through {', '.join(f'{table}_other' for table in large)} beside those who use it ...")
        try:
            for table in large:
                _patiently(lambda table=table: _prove(connection, table, later), tell, pause)  # type: ignore[misc]
            for week in later if large else lacking:
                made += _patiently(lambda week=week: _make_partitions(connection, week, is_alone=True), tell, pause)  # type: ignore[misc]
        finally:
            for table in large:
                _patiently(lambda table=table: _unprove(connection, table), tell, pause)  # type: ignore[misc]
        return made


def drop(database_url: str, before: datetime) -> int:
    """Drops the weeks that ended before the instant `before`, and says how many. What must stay of them, younger events
    and those with deliveries, is moved to the default partition in the same transaction; where that is much, the week
    stays. Raises Unavailable, after which doing it again is safe."""
    with _connect(database_url) as connection:
        over = [week for week in weeks(connection) if week.end <= before.date()]
        try:
            return sum(_drop_partitions(connection, week, before) for week in over)
        except psycopg.errors.InsufficientPrivilege:
            _log.warning("this role may drop no partitions: the role that owns the tables may")
            return 0


async def in_thread(work: Callable[[], int]) -> int:
    """Awaits `work` in a thread that nobody waits for any more once the caller has gone: a database that is frozen may
    never answer it, and the process has to end all the same. Raises Unavailable after PATIENCE_SECONDS."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[int] = loop.create_future()

    def settle(settled: Callable[[Any], None], value: object) -> None:
        if not done.done():
            settled(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], object] = done.set_result, work()
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            outcome = done.set_exception, error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="partitions", daemon=True).start()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await done
    except TimeoutError:
        raise Unavailable("the database did not answer") from None


def _weeks_wanted(connection: "psycopg.Connection[Any]", prefix: str, now: datetime) -> list[Week]:
    this, present = Week.of(prefix, now.astimezone(UTC).date()), weeks(connection)
    return [week for week in (this.next(number) for number in range(AHEAD + 1)) if week not in present]


def _make_partitions(connection: "psycopg.Connection[Any]", week: Week, *, is_alone: bool = False) -> bool:
    """The week's partitions, both or none. `is_alone`: the caller has the lock already."""
    try:
        with connection.transaction():
            if not is_alone and not _is_next(connection):
                return False
            if week in weeks(connection):
                return False
            for table in TABLES:
                # A CHECK that a broken run left would refuse rows one day; where it is of use, its owner has the lock.
                if not is_alone:
                    _unprove(connection, table)
                if _is_large(connection, table) and not _is_proven(connection, table):
                    return False
                own = sql.Identifier(week.table(table))
                _run(connection, "CREATE TABLE {own} (LIKE {parent} INCLUDING ALL)", own=own, parent=_name(table))
                _run(
                    connection,
                    "ALTER TABLE {parent} ATTACH PARTITION {own} FOR VALUES FROM ({first}) TO ({end})",
                    own=own,
                    parent=_name(table),
                    **_bounds(week),
                )
    except psycopg.errors.CheckViolation:
        # The default partition has rows of it.
        return False
    return True


def _prove(connection: "psycopg.Connection[Any]", table: str, later: Sequence[Week]) -> None:
    """A CHECK that the default partition has no row of these weeks, which follow each other."""
    _unprove(connection, table)
    with connection.transaction():
        _run(
            connection,
            "ALTER TABLE {other} ADD CONSTRAINT {proof} CHECK (reference < {first} OR reference >= {end}) NOT VALID",
            **_proof(table),
            first=sql.Literal(later[0].first_reference),
            end=sql.Literal(later[-1].next().first_reference),
        )
    # It reads, and those who write are not in its way.
    with suppress(psycopg.errors.CheckViolation), connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        _run(connection, "ALTER TABLE {other} VALIDATE CONSTRAINT {proof}", **_proof(table))


def _unprove(connection: "psycopg.Connection[Any]", table: str) -> None:
    if connection.execute(PROOF, _proof_of(table)).fetchone() is not None:
        with connection.transaction():
            _run(connection, "ALTER TABLE {other} DROP CONSTRAINT {proof}", **_proof(table))


def _is_proven(connection: "psycopg.Connection[Any]", table: str) -> bool:
    return connection.execute(PROOF, _proof_of(table)).fetchone() == (True,)


def _is_large(connection: "psycopg.Connection[Any]", table: str) -> bool:
    size = connection.execute("SELECT pg_relation_size(%s::regclass)", [f"{table}_other"]).fetchone()
    return size is not None and size[0] > LOOKED_THROUGH


def _drop_partitions(connection: "psycopg.Connection[Any]", week: Week, before: datetime) -> bool:
    with connection.transaction() as transaction:
        if not _is_next(connection) or week not in weeks(connection):
            return False
        own = {table: sql.Identifier(week.table(table)) for table in TABLES}
        stay = sql.SQL(STAY).format(
            events=own["events"],
            before=sql.Literal(id_at("evt", before)),
            most=sql.Literal(MOVED_MAX + 1),
            **_bounds(week),
        )
        many = sql.SQL("SELECT count(*) > {most} FROM ({stay}) AS stay").format(most=sql.Literal(MOVED_MAX), stay=stay)
        # Before anybody has to wait, and again when nobody can add to it any more.
        if connection.execute(many).fetchone() == (True,):
            _log.warning("a week of events is over, and much of it has to stay", week=str(week.monday))
            return False
        for table in TABLES:
            _run(connection, "ALTER TABLE {parent} DETACH PARTITION {own}", parent=_name(table), own=own[table])
        if connection.execute(many).fetchone() == (True,):
            raise psycopg.Rollback(transaction)
        connection.execute(sql.SQL("CREATE TEMP TABLE stay ON COMMIT DROP AS {}").format(stay))
        for table in TABLES:
            _run(
                connection,
                "INSERT INTO {parent} SELECT own.* FROM stay JOIN {own} own USING (reference)",
                parent=_name(table),
                own=own[table],
            )
            _run(connection, "DROP TABLE {own}", own=own[table])
        _log.info("a week of events was dropped", week=str(week.monday))
        return True
    return False


def _is_next(connection: "psycopg.Connection[Any]") -> bool:
    """Whether no other process is at it; kept until the transaction ends."""
    return connection.execute(f"SELECT pg_try_advisory_xact_lock(%s, {OWN_SCHEMA})", [LOCK]).fetchone() == (True,)


def _patiently(work: Callable[[], Any], tell: Callable[[str], None], pause: float) -> Any:
    for number in range(1, TRIES + 1):
        try:
            return work()
        except psycopg.errors.LockNotAvailable:
            if number == TRIES:
                raise
            tell(f"  try {number} of {TRIES}: got no lock; again in {pause:g} s")
            time.sleep(pause)
    return None


def _run(connection: "psycopg.Connection[Any]", statement: LiteralString, **parts: sql.Composable) -> None:
    connection.execute(sql.SQL(LIMITS))
    connection.execute(sql.SQL(statement).format(**parts))


def _name(table: str) -> sql.Composable:
    return sql.Identifier(table)


def _bounds(week: Week) -> dict[str, sql.Composable]:
    return {"first": sql.Literal(week.first_reference), "end": sql.Literal(week.next().first_reference)}


def _proof_of(table: str) -> list[str]:
    return [f"{table}_other", f"{table}_other_proof"]


def _proof(table: str) -> dict[str, sql.Composable]:
    return {"other": sql.Identifier(f"{table}_other"), "proof": sql.Identifier(f"{table}_other_proof")}


@contextmanager
def _connect(database_url: str) -> Iterator["psycopg.Connection[Any]"]:
    with translate_errors(), sync_connection(database_url, application_name="payagg partitions") as connection:
        connection.autocommit = True
        yield connection
