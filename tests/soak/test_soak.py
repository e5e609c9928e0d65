"""Faults at random moments under load: whatever was acknowledged is paid once, settled, and told to the merchant.

One short round in `make test`; `make soak` goes on for PAYAGG_TEST_ROUNDS.
"""

import asyncio
import random
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from payagg.application.reconciliation import HOLD
from tests.soak.site import ONE, SoakSite, a_site
from tests.support.rounds import ROUNDS, scaled

# What `payagg serve --workers N --no-worker` and `payagg worker` are on several machines, all through one PgBouncer.
SEVERAL = ("api",) * 3 + ("worker",) * 2
MANY = ("api",) * 16 + ("worker",) * 4
PAYERS = 8
PAYMENTS = 4  # by each payer in one round
KILLS = 3
PAUSE = 0.2  # seconds between a payer's tries
END = 2 * HOLD.total_seconds()  # seconds for a round to end; a bound, never an expectation
pytestmark = pytest.mark.anyio


async def persistent(call: Any, *good: int) -> dict[str, Any]:
    """The data of the answer once it is a good one: a caller that meets a fault tries again, with the same words."""
    while True:
        try:
            answer = await call()
        except httpx.TransportError:
            pass
        else:
            if answer.status_code in good:
                return dict(answer.json()["data"])
            # Our own faults are 503, and a provider that could not be asked is a 400 by its code.
            assert answer.status_code in (503, 400), answer.text
        await asyncio.sleep(PAUSE)


async def payer(site: SoakSite, name: str, chance: random.Random, late: list[str]) -> None:
    """Buys something a few times. Some pay `late`: when the news can reach nobody."""
    for number in range(PAYMENTS):
        key = f"{name} {number}"
        body = {"amount": 100 + number, "gateway": "provider_a", "idempotencyKey": key}
        initiate = partial(site.client.post, "/payments/initiate", json=body, headers=site.shop.as_sandbox)
        reference = (await persistent(initiate, 200, 201))["reference"]
        site.recorder.initiated(key, reference)
        place = f"/public/payments/{reference}/process"
        await persistent(partial(site.client.post, place, json={"gatewaySlug": "provider_a"}), 200)
        site.recorder.handed_over.add(reference)
        charge = [one for one in site.fake.book.charges if one.partition(".")[0] == reference][-1]
        if chance.random() < 0.3:
            late.append(charge)
        else:
            site.fake.pay(charge)


async def killer(site: SoakSite, chance: random.Random) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0.2, 2.0))
        if chance.random() < 0.5:
            await site.kill_one(chance)
            await site.start()
        else:
            site.kill_postgres()


async def paid_of(site: SoakSite) -> set[str]:
    """The references that we say are paid, of those that we acknowledged."""
    found = set()
    for reference in site.recorder.acknowledged.values():
        read = partial(site.client.get, f"/payments/{reference}", headers=site.shop.as_sandbox)
        if (await persistent(read, 200))["status"] == "SUCCESS":
            found.add(reference)
    return found


async def by_schedule(url: str) -> float:
    """Seconds until the last payment that is in the air would be asked about by the schedule alone, told by a Postgres
    that may be starting."""
    while True:
        try:
            connecting = psycopg.connect(url)
            break
        except psycopg.OperationalError:
            await asyncio.sleep(PAUSE)
    with connecting as connection:
        row = connection.execute(
            "SELECT max(greatest(a.next_ask_at, a.held_until)), now() FROM attempts a "
            "JOIN payments p USING (reference) WHERE p.status = 'PENDING'"
        ).fetchone()
    assert row is not None
    last, now = row
    return (last - now).total_seconds() if isinstance(last, datetime) else 0.0


async def a_round(site: SoakSite, seed: int) -> str:
    """One round; the line that tells of it."""
    chance = random.Random(seed)
    late: list[str] = []
    earlier = len(site.recorder.acknowledged)
    payers = [payer(site, f"{seed} {number}", chance, late) for number in range(PAYERS)]
    await asyncio.gather(*payers, killer(site, chance))
    # The last fault: every process dies, the late payers pay, and the provider's events reach nobody.
    await site.kill_all()
    for reference in late:
        site.fake.pay(reference)
    await site.fake.book.settled()
    async with asyncio.timeout(END):
        planned = await by_schedule(site.postgres.url)
    began = time.monotonic()
    await site.start()
    settled: float | None = None
    async with asyncio.timeout(END):
        while True:
            paid = await paid_of(site)
            if settled is None and paid >= site.recorder.handed_over:
                settled = time.monotonic() - began
            if settled is not None and site.recorder.told("payment.success").keys() >= paid:
                break
            await asyncio.sleep(PAUSE)
    told = time.monotonic() - began
    assert site.recorder.wrongs(paid) == []
    return (
        f"seed {seed}: {len(paid) - earlier} payments, {len(late)} paid unseen; after the restart the last was settled "
        f"in {settled:.1f} s (by the schedule alone {planned:.0f} s), the last webhook came in {told:.1f} s"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("roles", "rounds"),
    [
        pytest.param(ONE, scaled(20) // 20, id="one process"),
        pytest.param(SEVERAL, 1, id="several processes"),
        pytest.param(
            MANY, 3, id="many processes", marks=pytest.mark.skipif(ROUNDS <= 20, reason="`make soak` runs it")
        ),
    ],
)
async def test_faults_at_random_moments_lose_nothing_and_charge_nobody_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], roles: tuple[str, ...], rounds: int
) -> None:
    first = random.SystemRandom().randrange(10_000)
    async with a_site(tmp_path / "state", roles, pgbouncer=roles is not ONE) as site:
        for seed in range(first, first + rounds):
            line = await a_round(site, seed)
            with capsys.disabled():
                print(f"\n{line}", end="")
        killed = site.killed
    with capsys.disabled():
        print(f"\n{len(roles)} processes, of which {killed} were killed one by one", end="")
