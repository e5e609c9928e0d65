"""`payagg archive` as operators run it: on Postgres, with files in a folder, killed on its way, and read by others."""

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.reports.timeline import payment_timeline
from payagg.domain.attempt import CHECK_PAID_AFTER
from payagg.domain.payment import Payment, Status
from payagg.extensions.archive.tables import TABLES
from tests.contracts.archive import ENDED, named, with_history
from tests.integration.http.providers.test_inbound import InboundWorld, charge_event
from tests.integration.postgres.test_backup import shell
from tests.support.machine import ROOT
from tests.support.postgres_world import execute
from tests.support.processes import environment, one_line, payagg

pytest.importorskip("pyarrow")
BEFORE = "2025-02-01"


class Archived:
    """The command on one database and one folder."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def run(self, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        return payagg(*words, PAYAGG_DATABASE_URL=self.url, PAYAGG_ARCHIVE_STORE=str(self.folder), **settings)

    def archive(self, *words: str) -> str:
        done = self.run("archive", "--before", BEFORE, *words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def explained(self, payment: str) -> list[str]:
        done = self.run("explain", payment)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def in_database(self) -> dict[str, list[Any]]:
        """The archive's columns of every row that the database holds."""
        return {
            table: execute(self.url, "SET timezone = 'UTC'", f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2")
            for table, columns in TABLES.items()
        }

    def in_files(self) -> dict[str, list[Any]]:
        """The same of every file in the folder, whether the database knows of it or not, as arrow-rs reads it."""
        from arro3.io import read_parquet

        found: dict[str, list[Any]] = {}
        for table, columns in TABLES.items():
            found[table] = []
            for path in sorted(self.folder.glob(f"*/*/{table}.parquet")):
                whole = read_parquet(str(path)).read_all()
                assert whole.column_names == list(columns)
                found[table] += zip(*(whole[name].to_pylist() for name in columns), strict=True)
            found[table].sort(key=lambda row: row[:2])
        return found


@pytest.fixture
def archived(database_url: str, tmp_path: Path) -> Archived:
    return Archived(database_url, tmp_path / "archive")


async def paid(site: InboundWorld) -> Payment:
    payer: dict[str, Any] = {
        **{"customer_email": "canary@payer.example", "customer_name": "canary", "customer_phone": "+234canary"},
        **{"callback_url": "https://canary.example/", "idempotency_key": "canary", "metadata": {"note": "canary"}},
    }
    payment = await site.handed_over("provider_a", **payer)
    assert await site.deliver("provider_a/sandbox", json.dumps(charge_event(payment)).encode()) == 200
    found = await site.read(payment)
    assert found.status is Status.SUCCESS
    return found


async def purged(site: InboundWorld) -> None:
    """What had its thirty days is gone."""
    while await site.services.retention.forget_deliveries():
        pass
    await site.services.retention.empty_inbox()


@pytest.mark.rule("personal-data.3")
async def test_an_archived_payment_reads_as_before(site: InboundWorld, archived: Archived) -> None:
    payment = await paid(site)
    still_open = await site.handed_over("provider_a")
    site.clock.move(CHECK_PAID_AFTER[-1] + timedelta(days=1))
    # What is paid is asked about, and so stays here, for half a year.
    await site.services.reconciler.run_at("provider_a", payment.environment, site.clock.now())
    await purged(site)
    assert " 0 payments written" in archived.archive("--remove"), "its webhook is not delivered"
    execute(archived.url, "UPDATE deliveries SET status = 'DELIVERED', next_attempt_at = NULL")
    await purged(site)
    before, rows = archived.explained(payment.reference), archived.in_database()
    assert any("provider    start_charge" in line for line in before)
    assert "1 payments written in" in archived.archive("--remove")

    assert [line for line in archived.explained(payment.reference) if "archive " not in line] == before
    written = archived.in_files()
    for table in TABLES:
        assert written[table] == [row for row in rows[table] if row[0] == payment.reference], table
    left = {table for table, own in archived.in_database().items() for row in own if row[0] == payment.reference}
    assert left == {"payments"}
    assert archived.explained(still_open.reference)
    assert "BROKEN" not in archived.run("doctor").stdout

    # Whoever reads the payment needs no archive.
    detail = await site.services.payments.read(payment.reference, payment.business_id, payment.environment)
    assert (detail.status, detail.amount, detail.metadata) == (Status.SUCCESS, payment.amount, {"note": "canary"})
    story = await payment_timeline(site.store, site.clock, payment.reference)
    assert (story.payment, story.transitions, story.attempts, bool(story.archived_at)) == (detail, [], [], True)
    assert (await payment_timeline(site.store, site.clock, still_open.reference)).archived_at is None
    assert (await site.services.verification.verify(payment.reference)).status is Status.SUCCESS
    done = archived.run("erase", "--email", "canary@payer.example")
    assert done.stdout == "1 payments: who paid is cleared.\n"
    for path in archived.folder.rglob("*"):
        assert path.is_dir() or b"canary" not in path.read_bytes()


def reported(program: str, folder: Path) -> str:
    """What a reader's program prints."""
    command = [sys.executable, "-c", program]
    own = environment(ARCHIVE=str(folder))
    return subprocess.run(command, check=True, capture_output=True, text=True, env=own).stdout


@pytest.mark.release
async def test_the_guide_is_done_as_it_is_written(store: PostgresStore, archived: Archived, tmp_path: Path) -> None:
    for number in range(3):
        await with_history(store, named(f"{number:06d}"), *ENDED)
    place = {"PAYAGG_DATABASE_URL": archived.url, "PAYAGG_ARCHIVE_STORE": str(archived.folder)}
    page = (ROOT / "docs" / "operating" / "archive.md").read_text(encoding="utf-8")
    [commands] = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [program] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    said = shell(commands, tmp_path, **place).splitlines()
    assert re.fullmatch(r"PAY-20250131  3 payments written in [0-9,]+ bytes", said[0])
    assert "3 removed from the database" in said[1]
    assert reported(program, archived.folder) == "[{'status': 'SUCCESS', 'amount_count': 3, 'amount_sum': 450000}]\n"


def test_a_wrong_date_is_wrong_usage_and_a_day_that_lasts_is_refused(archived: Archived) -> None:
    assert archived.run("archive", "--before", "yesterday").returncode == 2
    assert "before: Must not be later than today." in one_line(archived.run("archive", "--before", "9999-01-01"))
