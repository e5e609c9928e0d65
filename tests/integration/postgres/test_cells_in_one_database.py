"""Cells that share a database: each is a schema and its role, and neither sees nor disturbs another."""

import subprocess
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime

import psycopg
import pytest

from payagg.adapters.postgres import partitions
from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.embedded.programs import MAJOR, find_package
from payagg.adapters.postgres.migrations import is_current
from payagg.adapters.postgres.migrations.upgrade import MIGRATION_LOCK, migrate
from payagg.adapters.postgres.partitions import AHEAD, LOCK, drop, make, make_patiently
from payagg.adapters.postgres.store import PostgresStore
from tests.support.cell_schemas import ROLES, execute, rows, url_of

NOW = datetime(2025, 1, 29, 12, tzinfo=UTC)
BUSINESS = "INSERT INTO businesses VALUES ('biz', 'Shop', 'ACTIVE', 'APPROVED', now(), now())"
ALL_WEEKS = AHEAD + 1


def told(_: str) -> None:
    """Progress that nobody looks at."""


@pytest.mark.anyio
async def test_another_cells_migrations_neither_count_nor_disturb(
    cell_urls: dict[str, str], store_in_schema: PostgresStore
) -> None:
    own, index = cell_urls["pcx"], "idempotency_keys_by_day"
    execute(own, "DROP TABLE token_revocations", "UPDATE alembic_version SET version_num = '0011'")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(cell_urls["payagg"]) as home:
        home.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK])
        home.execute("SELECT pg_advisory_xact_lock(%s, 'public'::regnamespace::oid::int)", [MIGRATION_LOCK])
        migrating = pool.submit(migrate, own, to="0012")
        wait([migrating], timeout=60)
        home.rollback()
        assert migrating.done()
    assert rows(own, "SELECT to_regclass('pcx.token_revocations') IS NOT NULL") == [(True,)]
    # An index that another cell is building is left alone.
    execute(own, f"DROP INDEX {index}", "UPDATE alembic_version SET version_num = '0015'")
    building = f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'public.{index}'::regclass"
    execute(cell_urls["postgres"], building)
    migrate(own, to="0016")
    both = f"SELECT to_regclass('pcx.{index}')::text, to_regclass('public.{index}')::text"
    assert rows(own, both) == [(index, f"public.{index}")]
    execute(own, "DROP TABLE alembic_version")
    execute(cell_urls["payagg"], "GRANT SELECT ON alembic_version TO pcx")
    assert not await store_in_schema.is_current()
    assert not is_current(own)


def test_partitions_are_made_while_another_cell_makes_its_own(cell_urls: dict[str, str]) -> None:
    with psycopg.connect(cell_urls["payagg"], autocommit=True) as home:
        home.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        home.execute("SELECT pg_advisory_lock(%s, 'public'::regnamespace::oid::int)", [LOCK])
        assert make(cell_urls["pbx"], "PBX", NOW) == ALL_WEEKS
        assert make_patiently(cell_urls["pcx"], "PCX", NOW, told, pause=0) == ALL_WEEKS
    for role, prefix in (("pbx", "PBX"), ("pcx", "PCX"), ("payagg", "PAY")):
        assert make(cell_urls[role], prefix, NOW) == (ALL_WEEKS if role == "payagg" else 0)
        # Only with the right to make temporary tables, which the recipe gives.
        assert drop(cell_urls[role], datetime(2026, 1, 1, tzinfo=UTC)) == ALL_WEEKS


def test_a_check_of_another_cell_proves_nothing(cell_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    proof = "ALTER TABLE events_other ADD CONSTRAINT events_other_proof CHECK (reference < 'PAY-20250203')"
    execute(cell_urls["payagg"], proof, proof.replace("events_other", "event_metadata_other"))
    assert make(cell_urls["pbx"], "PBX", NOW) == ALL_WEEKS
    monkeypatch.setattr(partitions, "LOOKED_THROUGH", -1)
    assert make(cell_urls["pcx"], "PCX", NOW) == 0


@pytest.mark.anyio
async def test_each_cell_has_its_own_place_rows_rules_and_findings(
    cell_urls: dict[str, str], store_in_schema: PostgresStore, other_in_schema: PostgresStore
) -> None:
    async with store_in_schema.begin() as one, other_in_schema.begin() as two:
        assert await one.moves.database() != await two.moves.database()
    for schema in ("public", "pbx"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows(cell_urls["pcx"], f"SELECT FROM {schema}.payments")
    for role in ROLES:
        assert is_current(cell_urls[role])
        assert all(rule.is_kept for rule in examine(cell_urls[role]).rules)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
    assert rows(cell_urls["pcx"], tables, "pcx") == rows(cell_urls["pcx"], tables, "public")
    execute(cell_urls["pcx"], BUSINESS, "INSERT INTO moved_businesses VALUES ('biz', 'PBX', 'MOVING', NULL, now())")
    execute(cell_urls["payagg"], BUSINESS)
    for role in ("pcx", "postgres"):
        with pytest.raises(psycopg.errors.SerializationFailure):
            execute(cell_urls[role], "INSERT INTO pcx.members VALUES ('biz', 'ada', 'OWNER')")


def test_a_dump_of_its_schema_is_the_whole_cell(cell_urls: dict[str, str], postgres: str) -> None:
    execute(cell_urls["pbx"], BUSINESS, "INSERT INTO moved_businesses VALUES ('biz', 'PAY', 'MOVING', NULL, now())")
    make(cell_urls["pbx"], "PBX", NOW)
    programs = find_package() / f"pginstall{MAJOR}" / "bin"
    dump = subprocess.run(
        [programs / "pg_dump", "--schema=pbx", cell_urls["pbx"]], check=True, capture_output=True, text=True
    ).stdout
    admin, own = url_of(postgres, "postgres", "payagg"), url_of(postgres, "pbx", "moved_out")
    execute(admin, "CREATE DATABASE moved_out")
    restore = [str(programs / "psql"), "--set=ON_ERROR_STOP=1", "--quiet", url_of(postgres, "postgres", "moved_out")]
    subprocess.run(restore, check=True, capture_output=True, text=True, input=dump)
    assert is_current(own)
    findings = examine(own)
    assert [rule.rule for rule in findings.rules if not rule.is_kept] == []
    assert make(own, "PBX", NOW) == 0
    with pytest.raises(psycopg.errors.SerializationFailure):
        execute(own, "INSERT INTO members VALUES ('biz', 'ada', 'OWNER')")
    execute(admin, "DROP DATABASE moved_out WITH (FORCE)")
