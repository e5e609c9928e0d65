"""A server whose machine's clock is wrong, and jumps: expiry and dates go by the database's clock."""

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast

import httpx
import psycopg
import pytest

from payagg.adapters.postgres.store import PostgresStore
from tests.support.assembly import services_over
from tests.support.http_world import an_api
from tests.support.machine import absent
from tests.support.processes import environment, serving, wait_until

LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
WINDOW = timedelta(hours=1)  # from initiation to expiry
BELIEVED = timedelta(seconds=10)  # between the database's word and ours, on a loaded machine
JUMPS = ("-5m", "+1d", "-3d")
CARD = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}
Clock = tuple[Callable[[str], object], dict[str, str]]


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """Sets the wall clock of a process, and the environment by which it listens; its monotonic clock is true."""
    if LIBRARY is None:
        absent("libfaketime is not installed (on Debian: apt install faketime)")
    file = tmp_path / "offset"
    file.write_text("+0")
    listening = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return file.write_text, listening


def is_off(client: httpx.Client, now: datetime) -> bool:
    """Whether the server's machine tells another time: what it writes into `Date`."""
    told = parsedate_to_datetime(client.get("/payments/context").headers["date"]).replace(tzinfo=None)
    return abs(told - now) > timedelta(minutes=4)


async def test_a_wrong_clock_of_the_machine_decides_nothing(
    database_url: str, store: PostgresStore, clock: Clock
) -> None:
    jump, listening = clock
    async with an_api(services_over(store)) as api:
        shop = await api.open_shop()
    with (
        serving(database_url, "--no-worker", **listening) as (_, origin),
        httpx.Client(base_url=f"{origin}/api/v1", headers=shop.as_sandbox, timeout=30) as client,
        psycopg.connect(database_url, autocommit=True) as database,
    ):

        def now() -> datetime:
            [(found,)] = database.execute("SELECT now() AT TIME ZONE 'UTC'").fetchall()
            return cast(datetime, found)

        def initiated() -> dict[str, Any]:
            return dict(client.post("/payments/initiate", json={"amount": 15_000}).json()["data"])

        def processed(payment: dict[str, Any]) -> int:
            return client.post(f"/public/payments/{payment['reference']}/process", json=CARD).status_code

        first = initiated()
        for offset in JUMPS:
            jump(offset)
            wait_until(lambda: is_off(client, now()))
            before = now()
            payment = initiated()
            expires_at = datetime.fromisoformat(payment["expiresAt"]).replace(tzinfo=None)
            assert abs(expires_at - before - WINDOW) < BELIEVED, offset
            day = payment["reference"].split("-")[1]
            assert day in {at.strftime("%Y%m%d") for at in (before, now())}, offset
            assert processed(payment) == 200, offset
        # Its window ended a while ago; no trigger is to mind that.
        database.execute("SET session_replication_role = replica")
        earlier = "UPDATE payments SET created_at = created_at - %s, expires_at = now() - %s WHERE reference = %s"
        database.execute(earlier, [WINDOW, BELIEVED, first["reference"]])
        for offset in (*JUMPS, "+0"):
            jump(offset)
            assert processed(first) == 410, offset  # an expired payment never comes back


@pytest.mark.parametrize(("offset", "told"), [("+6", "6 s ahead of"), ("-6", "6 s behind")])
def test_doctor_tells_of_a_machine_whose_clock_is_not_the_databases(
    database_url: str, clock: Clock, offset: str, told: str
) -> None:
    jump, listening = clock
    jump(offset)
    # A process of its own: the library is loaded at its start.
    settings = environment(PAYAGG_DATABASE_URL=database_url, **listening)
    said = subprocess.check_output([sys.executable, "-m", "payagg", "doctor"], env=settings, text=True)
    warned = [line for line in said.splitlines() if line.startswith("warning This machine's clock")]
    assert told in " ".join(warned)
