"""`python -m tests.scorecard.steady`: a steady load for half an hour, and what becomes of memory and connections.

Twenty payments begin each second, whether or not those before have ended: initiate, process, verify and two reads, so
a hundred requests. Notes what it found for the scorecard.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
import psycopg

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.store import PostgresStore
from tests.scorecard.figures import note
from tests.support.assembly import services_over
from tests.support.http_world import Shop, an_api
from tests.support.processes import serving

JOURNEYS = 20  # begun each second
REQUESTS = 5  # of one
WARM_SECONDS = 120.0  # until memory is looked at
LOOK_SECONDS = 10.0
REACHED = 0.95  # of the rate, or the figures are of another load
NEVER = "1000000"
LIMITS = ("KEY", "BUSINESS", "REFERENCE", "ADDRESS", "UNKNOWN_REFERENCE")
CARD = {"gatewaySlug": "sandbox", "cardNumber": "4242424242424242"}


class SteadyLoad:
    def __init__(self, client: httpx.AsyncClient, shop: Shop) -> None:
        self.client, self.shop = client, shop
        self.requests = 0
        self.faults: list[str] = []

    async def ask(self, method: str, path: str, status: int, **more: object) -> dict[str, str]:
        self.requests += 1
        answer = await self.client.request(method, path, **more)  # type: ignore[arg-type]
        if answer.status_code != status:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return dict(answer.json()["data"])

    async def journey(self) -> None:
        key = self.shop.as_sandbox
        try:
            made = await self.ask("POST", "/payments/initiate", 201, json={"amount": 15_000}, headers=key)
            public = f"/public/payments/{made['reference']}"
            await self.ask("GET", public, 200)
            await self.ask("POST", f"{public}/process", 200, json=CARD)
            await self.ask("GET", f"{public}/verify", 200)
            await self.ask("GET", f"/payments/{made['reference']}", 200, headers=key)
        except (httpx.HTTPError, AssertionError) as fault:
            self.faults.append(repr(fault))

    async def run(self, until: float) -> None:
        under_way: set[asyncio.Task[None]] = set()
        began, number = time.monotonic(), 0
        while time.monotonic() < until:
            number += 1
            task = asyncio.create_task(self.journey())
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            await asyncio.sleep(max(0.0, began + number / JOURNEYS - time.monotonic()))
        await asyncio.gather(*under_way)


def memory_of(pid: int) -> int:
    """Bytes that the process and those below it hold."""
    whole = psutil.Process(pid)
    return sum(one.memory_info().rss for one in (whole, *whole.children(recursive=True)))


def connections_of(url: str) -> int:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url) as connection:
        row = connection.execute(asked).fetchone()
    assert row is not None
    return int(row[0])


async def measured(url: str, seconds: float) -> tuple[SteadyLoad, list[int], list[int]]:
    store = PostgresStore(url, pool_size=2, pgbouncer=False)
    async with an_api(services_over(store)) as api:
        shop = await api.open_shop()
    await store.close()
    limits = {f"PAYAGG_{name}_RATE_LIMIT": NEVER for name in LIMITS[:-1]} | {"PAYAGG_UNKNOWN_REFERENCE_LIMIT": NEVER}
    memory: list[int] = []
    connections: list[int] = []
    with serving(url, "--workers", "2", **limits) as (process, origin):
        async with httpx.AsyncClient(base_url=f"{origin}/api/v1", timeout=30, trust_env=False) as client:
            load = SteadyLoad(client, shop)
            began = time.monotonic()
            running = asyncio.create_task(load.run(began + seconds))
            await asyncio.sleep(min(WARM_SECONDS, seconds / 3))
            while not running.done():
                memory.append(memory_of(process.pid))
                connections.append(await asyncio.to_thread(connections_of, url))
                await asyncio.wait([running], timeout=LOOK_SECONDS)
            await running
    return load, memory, connections


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="payagg-steady-") as folder:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(folder, 0o711)
        with EmbeddedPostgres(Path(folder) / "state") as postgres:
            migrate(postgres.url)
            load, memory, connections = asyncio.run(measured(postgres.url, minutes * 60))
    growth = memory[-1] / memory[0] - 1
    rate = round(load.requests / (minutes * 60))
    print(f"{load.requests} requests, {rate} a second, {len(load.faults)} faults", *load.faults[:5], sep="\n")
    print(f"memory from {memory[0] >> 20} to {memory[-1] >> 20} MiB ({growth:+.1%})")
    print(f"connections from {min(connections)} to {max(connections)}")
    if rate < REACHED * JOURNEYS * REQUESTS:
        print("The load was never there: this machine has something else to do. Nothing is noted.")
        return 1
    note(
        "steady",
        minutes=round(minutes),
        rate=rate,
        requests=load.requests,
        faults=len(load.faults),
        growth=f"{growth:+.1%} ({memory[-1] >> 20} MiB)",
        connections=f"{min(connections)} to {max(connections)}",
    )
    return 1 if load.faults else 0


if __name__ == "__main__":
    sys.exit(main())
