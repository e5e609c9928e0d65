"""Events by weeks: made ahead, found by whoever reads, and dropped without anything that is young or pending."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from payagg_testing.clocks import ManualClock
from psycopg import sql
from structlog.testing import capture_logs

from payagg.adapters.postgres import partitions
from payagg.adapters.postgres.connections import OWN_SCHEMA
from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.partitions import AHEAD, TABLES, drop, make, make_patiently, weeks
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.postgres.week import WEEK, Week
from payagg.application.ports.outside import Unavailable
from payagg.application.upkeep.sweeps import keep_partitions
from payagg.domain.delivery import RETENTION
from tests.support.assembly import services_over
from tests.support.http_world import an_api
from tests.support.postgres_rules import superuser_url
from tests.support.postgres_world import somebody_waits
from tests.support.receivers import until

Connection = psycopg.Connection[Any]
NOW = datetime(2025, 1, 29, 12, tzinfo=UTC)  # a Wednesday
DAY = timedelta(days=1)
THIS = Week("PAY", date(2025, 1, 27))
ALL = [THIS.next(number) for number in range(AHEAD + 1)]
EVENT = """
INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at, metadata_at,
                    metadata_digest)
VALUES (%s, 1, %s, 'payment.success', 'biz', 'LIVE', '{}', %s, 1, 'digest')
"""
DELIVERY = """
INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, lane, status, attempts,
                        next_attempt_at, created_at)
VALUES (%s, 'dlv_1', %s, 'payment.success', 1, 'biz', 'LIVE', 'biz', 'PENDING', 0, now(), now())
"""


def told(_: str) -> None:
    """Progress that nobody looks at."""


def add_event(db: Connection, reference: str, at: datetime = NOW, *, pending: bool = False) -> None:
    event_id = f"evt_{int(at.timestamp() * 1000):012x}{reference[-6:]}"
    db.execute(EVENT, [reference, event_id, at])
    db.execute("INSERT INTO event_metadata VALUES (%s, 'digest', '{}')", [reference])
    if pending:
        db.execute(DELIVERY, [reference, event_id])


def where(db: Connection, reference: str) -> set[str]:
    """The tables that hold an event and its metadata."""
    rows = [
        db.execute(
            sql.SQL("SELECT tableoid::regclass::text FROM {} WHERE reference = %s").format(sql.Identifier(table)),
            [reference],
        ).fetchall()
        for table in TABLES
    ]
    return {name for found in rows for (name,) in found}


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("INSERT INTO businesses VALUES ('biz', 'Shop', 'ACTIVE', 'APPROVED', now(), now())")
        yield db


def test_while_one_process_makes_them_no_other_does(database_url: str, db: Connection) -> None:
    db.execute(f"SELECT pg_advisory_lock({partitions.LOCK}, {OWN_SCHEMA})")
    assert (make(database_url, "PAY", NOW), make_patiently(database_url, "PAY", NOW, told, pause=0)) == (0, 0)
    db.execute("SELECT pg_advisory_unlock_all()")
    assert make(database_url, "PAY", NOW) == len(ALL)


def test_an_event_lies_in_its_week_and_what_has_none_in_the_default(database_url: str, db: Connection) -> None:
    make(database_url, "PAY", NOW)
    for reference, name in (
        ("PAY-20250127-000000", "pay_20250127"),
        ("PAY-20250202-ZZZZZZ", "pay_20250127"),
        ("PAY-20250203-000000", "pay_20250203"),
        ("PAY-20250126-ZZZZZZ", "other"),
        ("OLD-20250127-000000", "other"),
        ("ZZZ-20250127-000000", "other"),
    ):
        add_event(db, reference)
        assert where(db, reference) == {f"events_{name}", f"event_metadata_{name}"}


def test_a_week_of_which_the_default_has_rows_stays_there(database_url: str, db: Connection) -> None:
    add_event(db, "PAY-20250129-000001")
    assert make(database_url, "PAY", NOW) == AHEAD
    assert weeks(db) == ALL[1:]
    add_event(db, "PAY-20250130-000001")
    assert where(db, "PAY-20250130-000001") == {"events_other", "event_metadata_other"}


def test_a_large_default_is_looked_through_beside_those_who_write(
    database_url: str, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_event(db, "PAY-20250129-000001")
    lines: list[str] = []
    monkeypatch.setattr(partitions, "LOOKED_THROUGH", -1)
    with ThreadPoolExecutor(1) as pool:
        assert make(database_url, "PAY", NOW) == 0
        with psycopg.connect(database_url) as writer:
            add_event(writer, "PAY-20250129-000002")
            making = pool.submit(make_patiently, database_url, "PAY", NOW, lines.append, pause=0.05)
            while not any("got no lock" in line for line in lines):
                assert not making.done()
        assert making.result() == AHEAD
    assert weeks(db) == ALL[1:]
    assert db.execute("SELECT conname FROM pg_constraint WHERE conname LIKE '%proof'").fetchall() == []


def test_what_the_default_has_of_a_later_week_keeps_it_there_and_nothing_is_refused(
    database_url: str, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_event(db, "PAY-20250212-000001")
    monkeypatch.setattr(partitions, "LOOKED_THROUGH", -1)
    assert make_patiently(database_url, "PAY", NOW, told, pause=0) == 0
    monkeypatch.undo()
    add_event(db, "PAY-20250212-000002")
    assert make(database_url, "PAY", NOW) == AHEAD  # all but the one, now that they may be looked at


def test_a_week_that_begins_soon_is_not_kept_out(
    database_url: str, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "LOOKED_THROUGH", -1)
    make_patiently(database_url, "PAY", datetime(2025, 2, 2, 23, 59, tzinfo=UTC), told, pause=0)
    assert weeks(db)[0] == THIS.next(2)


def test_a_check_that_a_broken_run_left_is_taken_away(database_url: str, db: Connection) -> None:
    db.execute("ALTER TABLE events_other ADD CONSTRAINT events_other_proof CHECK (reference < 'PAY-20250203')")
    with pytest.raises(psycopg.errors.CheckViolation):
        add_event(db, "PAY-20250212-000001")
    make(database_url, "PAY", NOW)
    add_event(db, "ZZZ-20250212-000001")


def test_a_week_that_is_over_goes_but_for_what_is_young_or_has_a_delivery(database_url: str, db: Connection) -> None:
    make(database_url, "PAY", NOW)
    young = NOW + 20 * DAY
    add_event(db, "PAY-20250129-00000A")
    add_event(db, "PAY-20250129-00000B", young)
    add_event(db, "PAY-20250129-00000C", pending=True)
    add_event(db, "PAY-20250205-00000D")
    assert drop(database_url, datetime(2025, 2, 2, 23, tzinfo=UTC)) == 0
    assert drop(database_url, datetime(2025, 2, 3, tzinfo=UTC)) == 1
    assert weeks(db) == ALL[1:]
    others = {"events_other", "event_metadata_other"}
    assert [where(db, f"PAY-20250129-00000{one}") for one in "ABC"] == [set(), others, others]
    assert where(db, "PAY-20250205-00000D") == {"events_pay_20250203", "event_metadata_pay_20250203"}
    # A later notice of an old payment goes where there is room.
    add_event(db, "PAY-20250129-00000E", young)
    assert where(db, "PAY-20250129-00000E") == others
    dropped = db.execute("SELECT to_regclass('events_pay_20250127'), to_regclass('event_metadata_pay_20250127')")
    assert dropped.fetchone() == (None, None)


def test_a_week_of_which_much_must_stay_stays(
    database_url: str, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(database_url, "PAY", NOW)
    for number in range(3):
        add_event(db, f"PAY-20250129-00000{number}", NOW + 20 * DAY)
    monkeypatch.setattr(partitions, "MOVED_MAX", 2)
    assert drop(database_url, NOW + 10 * DAY) == 0
    assert where(db, "PAY-20250129-000000") == {"events_pay_20250127", "event_metadata_pay_20250127"}
    monkeypatch.undo()
    assert drop(database_url, NOW + 10 * DAY) == 1


def test_an_event_that_is_being_stored_is_never_dropped(database_url: str, db: Connection) -> None:
    make(database_url, "PAY", NOW)
    with psycopg.connect(database_url) as writer:
        add_event(writer, "PAY-20250129-000001", NOW + 20 * DAY)
        with pytest.raises(Unavailable):
            drop(database_url, NOW + 10 * DAY)
    assert drop(database_url, NOW + 10 * DAY) == 1
    assert where(db, "PAY-20250129-000001") == {"events_other", "event_metadata_other"}


async def test_a_payer_who_pays_while_the_week_is_made_is_answered(store: PostgresStore, database_url: str) -> None:
    async with an_api(services_over(store)) as api:
        reference = (await api.initiate(await api.open_shop()))["reference"]
        place, card = f"/public/payments/{reference}", {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
        with psycopg.connect(database_url) as maker:
            with maker.transaction():
                # Others see it once it is committed, but the default is locked from now on.
                week = Week.of("PAY", datetime.now(UTC).date())
                assert partitions._make_partitions(maker, week)
                paying = asyncio.create_task(api.client.post(f"{place}/process", json=card))
                await until(lambda: somebody_waits(database_url))
            assert (await paying).status_code == 200
            assert (await api.client.get(f"{place}/verify")).json()["data"]["status"] == "SUCCESS"
            told = maker.execute(
                "SELECT type FROM events WHERE reference = %s ORDER BY sequence", [reference]
            ).fetchall()
            assert told == [("payment.pending",), ("payment.success",)]
            assert where(maker, reference) == {week.table("events")}


def test_a_role_that_may_make_no_tables_is_told_what_to_do(database_url: str, db: Connection) -> None:
    make(database_url, "PAY", NOW)
    with psycopg.connect(superuser_url(database_url), autocommit=True) as superuser:
        superuser.execute("CREATE ROLE clerk LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk")
    try:
        as_clerk = superuser_url(database_url) + "&options=-c%20role%3Dclerk"
        with capture_logs() as lines:
            assert make(as_clerk, "PAY", NOW + 7 * DAY) == 0
            assert drop(as_clerk, NOW + 10 * DAY) == 0
        assert [line["event"].partition(":")[0] for line in lines] == [
            "this role may make no partitions",
            "this role may drop no partitions",
        ]
    finally:
        with psycopg.connect(superuser_url(database_url), autocommit=True) as superuser:
            superuser.execute("DROP OWNED BY clerk; DROP ROLE clerk")
    assert weeks(db) == ALL


def test_doctor_says_how_far_ahead_there_are_partitions(database_url: str) -> None:
    assert examine(database_url).partitions.startswith("No partition of events is ahead")
    make(database_url, "PAY", NOW)
    assert examine(database_url).partitions.startswith("No partition of events is ahead")
    today = datetime.now(UTC)
    make(database_url, "PAY", today - 5 * WEEK)
    told = examine(database_url).partitions
    assert told.startswith(
        f"Events have partitions until {Week.of('PAY', today.date()).next().monday}: run `payagg mig"
    )
    make(database_url, "PAY", today)
    last = Week.of("PAY", today.date()).next(AHEAD).end - DAY
    assert examine(database_url).partitions == f"Events have partitions to the end of {last}."


async def test_the_worker_makes_the_next_weeks_and_drops_what_is_past_retention(
    store: PostgresStore, db: Connection
) -> None:
    clock = ManualClock(NOW)
    assert (await keep_partitions(store, clock, "PAY"), weeks(db)) == (len(ALL), ALL)
    clock.move(RETENTION + 5 * DAY)
    assert await keep_partitions(store, clock, "PAY") == 6  # five are new, one is over
    assert weeks(db)[0] == ALL[1]


def test_the_migration_keeps_every_event_and_every_prepared_statement(empty_url: str) -> None:
    migrate(empty_url, to="0014")
    count = "SELECT count(*) FROM events WHERE reference = %s"
    with psycopg.connect(empty_url, autocommit=True) as db:
        add_event(db, "PAY-20250129-000001")
        assert db.execute(count, ["PAY-20250129-000001"], prepare=True).fetchone() == (1,)
        migrate(empty_url)
        assert where(db, "PAY-20250129-000001") == {"events_other", "event_metadata_other"}
        add_event(db, "PAY-20250129-000002")
        assert db.execute(count, ["PAY-20250129-000002"], prepare=True).fetchone() == (1,)
