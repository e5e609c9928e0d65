"""`make cells`: three cells and a router on loopback, under load. One cell is killed and comes back; events go to the
wrong cell; the router's cost is taken beside the way without it. Writes its tables into docs/cells.md."""

import argparse
import asyncio
import hashlib
import hmac
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import psycopg

from benchmarks.harness import write_between
from tests.cells.load import CellLoad, CellShop, opened
from tests.cells.site import NAMES, CellSite, three_cells_running
from tests.support.http_world import admin_token, bearer

DOCUMENT = Path(__file__).parents[2] / "docs" / "cells.md"
MARKS = ("<!-- cells: written by `make cells` -->", "<!-- cells: end -->")
KILLED = "PBX"
SHOPS = 3  # of each cell
EVENTS = 30  # of each cell
ROUND = 200  # reads
SECRET_KEY = "sk_test_" + "c" * 40
COPY_SECONDS = 40


@dataclass
class WayCost:
    """One way of reading; each list has an entry for each round."""

    median_ms: list[float] = field(default_factory=list)
    router_cpu_ms: list[float] = field(default_factory=list)
    cell_cpu_ms: list[float] = field(default_factory=list)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=15.0, help="of each phase of the load")
    options.add_argument("--rounds", type=int, default=15, help=f"of {ROUND} reads each way, for the cost")
    options.add_argument("--no-write", action="store_true", help="print the tables alone")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="payagg-cells-") as folder, three_cells_running(Path(folder)) as site:
        text, faults = asyncio.run(tried(site, chosen.seconds, chosen.rounds))
    print(text)
    if not chosen.no_write:
        write_between(text, DOCUMENT, MARKS)
    for fault in faults:
        print(f"BROKEN: {fault}")
    sys.exit(1 if faults else 0)


async def tried(site: CellSite, seconds: float, rounds: int) -> tuple[str, list[str]]:
    """The tables, and each bar that does not hold."""
    faults: list[str] = []
    async with httpx.AsyncClient(base_url=f"{site.origin}/api/v1", timeout=30, trust_env=False) as client:
        copied = await gateways_copied(site, client)
        shops = [await opened(site, client, name, number) for name in NAMES for number in range(SHOPS)]
        costs = await costs_of(site, shops[0], rounds)
        phases = []
        for name in ("three cells", f"{KILLED} killed", f"{KILLED} back"):
            load = CellLoad(client, shops)
            running = asyncio.create_task(load.run())
            if name.endswith("killed"):
                await asyncio.sleep(seconds / 5)
                await asyncio.to_thread(site.kill, KILLED)
            elif name.endswith("back"):
                await asyncio.to_thread(site.start, KILLED)
            await asyncio.sleep(seconds)
            load.finish()
            await running
            phases.append((name, load))
            faults += judged(name, load)
        arrived = await events_once(site, shops, client)
    faults += [f"{cell}: {count} of {EVENTS} events arrived once" for cell, count in arrived.items() if count != EVENTS]
    listed = site.command("cell", "list")
    if listed.returncode:
        faults.append(f"payagg cell list: {listed.stdout}{listed.stderr}")
    for name in NAMES:
        doctor = site.command("doctor", cell=name)
        if doctor.returncode:
            faults.append(f"doctor of {name}: {doctor.stdout}")
    return tables(phases, costs, arrived, copied, listed.stdout), faults


def judged(name: str, load: CellLoad) -> list[str]:
    """Another cell's businesses lose nothing, and the killed cell's are told 503 and nothing else."""
    wrong = []
    for (cell, status), count in load.refused.items():
        if cell != KILLED or name == "three cells" or status != 503:
            wrong.append(f"{name}: {count} requests of {cell} ended {status}")
    return wrong + [f"{name}: no journey of {cell}" for cell in NAMES if not load.journeys[cell]]


async def gateways_copied(site: CellSite, client: httpx.AsyncClient) -> float:
    """Stores provider_a's credentials once; seconds until every cell has them."""
    as_admin = bearer(admin_token())
    listed = (await client.get("/admin/gateways", headers=as_admin)).raise_for_status().json()["data"]
    [gateway] = [one["id"] for one in listed if one["slug"] == "provider_a"]
    place = f"/admin/gateways/{gateway}"
    body = {"credentials": {"sandboxSecretKey": SECRET_KEY}}
    (await client.patch(f"{place}/credentials", json=body, headers=as_admin)).raise_for_status()
    (await client.post(f"{place}/enable", headers=as_admin)).raise_for_status()
    began = time.monotonic()
    while time.monotonic() - began < COPY_SECONDS:
        done = await asyncio.to_thread(site.command, "cell", "list")
        if done.returncode == 0:
            return time.monotonic() - began
    raise SystemExit(f"the gateways did not reach every cell: {done.stdout}{done.stderr}")


async def costs_of(site: CellSite, shop: CellShop, rounds: int) -> dict[str, WayCost]:
    """Of one read with a key, one after the other on one connection: rounds of both ways in turn, as the machine is
    not the same from one moment to the next."""
    watched = psutil.Process(site.processes["router"].pid), psutil.Process(site.processes[shop.cell].pid)
    ways = {"direct": site.origin_of(shop.cell), "router": site.origin}
    costs = {name: WayCost() for name in ways}
    for number in range(rounds + 1):
        for name, base in ways.items():
            async with httpx.AsyncClient(base_url=f"{base}/api/v1", timeout=30, trust_env=False) as client:
                before, times = [sum(one.cpu_times()[:2]) for one in watched], []
                for _ in range(ROUND):
                    began = time.perf_counter()
                    (await client.get("/payments/context", headers=shop.as_server)).raise_for_status()
                    times.append(time.perf_counter() - began)
            after = [sum(one.cpu_times()[:2]) for one in watched]
            if number == 0:
                continue  # the first warms both up
            used = [(end - start) * 1000 / ROUND for start, end in zip(before, after, strict=True)]
            costs[name].median_ms.append(statistics.median(times) * 1000)
            costs[name].router_cpu_ms.append(used[0])
            costs[name].cell_cpu_ms.append(used[1])
    return costs


async def events_once(site: CellSite, shops: list[CellShop], client: httpx.AsyncClient) -> dict[str, int]:
    """How many events of each cell are in its inbox once and in no other, after each was sent to both other cells."""
    sent: dict[str, list[bytes]] = {name: [] for name in NAMES}
    for at, name in enumerate(NAMES):
        shop = next(shop for shop in shops if shop.cell == name)
        for number in range(EVENTS):
            made = await client.post("/payments/initiate", json={"amount": 5000}, headers=shop.as_server)
            data = {"id": number, "domain": "test", "status": "failed", "reference": made.json()["data"]["reference"]}
            body = json.dumps({"event": "charge.failed", "data": data | {"amount": 5000, "currency": "NGN"}}).encode()
            sent[name].append(body)
            signature = hmac.new(SECRET_KEY.encode(), body, hashlib.sha512).hexdigest()
            for wrong in (NAMES[(at + 1) % 3], NAMES[(at + 2) % 3]):
                told = await client.post(
                    f"{site.origin_of(wrong)}/api/v1/webhooks/provider_a/sandbox",
                    content=body,
                    headers={"x-provider_a-signature": signature},
                )
                told.raise_for_status()
    inboxes = {name: _digests(site, name) for name in NAMES}
    return {
        name: sum(
            [inboxes[cell].count(hashlib.sha256(body).digest()) for cell in NAMES]
            == [int(cell == name) for cell in NAMES]
            for body in sent[name]
        )
        for name in NAMES
    }


def _digests(site: CellSite, cell: str) -> list[bytes]:
    with psycopg.connect(site.databases[cell].url) as connection:
        return [bytes(digest) for (digest,) in connection.execute("SELECT digest FROM inbox").fetchall()]


def tables(
    phases: list[tuple[str, CellLoad]],
    costs: dict[str, WayCost],
    arrived: dict[str, int],
    copied: float,
    listed: str,
) -> str:
    lines = [
        "",
        "| Phase | Cell | Journeys | Answers | 503 | Other refusals |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, load in phases:
        for cell in NAMES:
            away = load.refused[cell, 503]
            other = sum(count for (of, status), count in load.refused.items() if of == cell and status != 503)
            lines.append(f"| {name} | {cell} | {load.journeys[cell]} | {load.answers[cell]} | {away} | {other} |")
    lines += ["", "| One read with a key | Median, ms | CPU of the router, ms | CPU of the cell, ms |"]
    lines += ["| --- | --- | --- | --- |"]
    for name, way in costs.items():
        figures = (statistics.median(of) for of in (way.median_ms, way.router_cpu_ms, way.cell_cpu_ms))
        lines.append(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")
    direct, through = costs["direct"], costs["router"]
    slower = statistics.median(b / a for a, b in zip(direct.median_ms, through.median_ms, strict=True))
    dearer = sum(through.router_cpu_ms) / sum(through.cell_cpu_ms)
    lines += [
        "",
        f"Through the router a read takes {slower:.1f} times as long as without it, and the router uses {dearer:.1f} "
        "times the CPU of the cell for it.",
        "",
        f"Events sent to both wrong cells that are in their own once and in no other: "
        f"{', '.join(f'{count} of {EVENTS} of {cell}' for cell, count in arrived.items())}.",
        "",
        f"Credentials set once were in every cell after {copied:.0f} s.",
        "",
        "```text",
        *listed.strip().splitlines(),
        "```",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
