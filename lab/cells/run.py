"""Three cells and HAProxy under load: a cell and HAProxy are killed and come back, a fourth cell is added, events go to
the wrong cell, and HAProxy's cost is taken beside the way without it."""

import argparse
import asyncio
import hashlib
import hmac
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import psutil
import psycopg

from lab.cells.site import ADDED, FRONT, NAMES, CellSite, three_cells_running
from lab.kit.buyer import Buyer, Load, Phase, a_client, loaded
from lab.kit.figures import RunSummary
from lab.kit.judgement import wrongs
from lab.kit.places import a_folder
from tests.support.http_world import admin_token, bearer, merchant_token

KILLED = "PBX"
SHOPS = 3  # of each cell
PAUSE = 0.1  # seconds between two journeys of one business
EVENTS = 30  # of each cell
ROUNDS, READS = 8, 256  # of both ways in turn, by
CALLERS = (1, 16, 64)
SECRET_KEY = "sk_test_" + "c" * 40
COPY_SECONDS = 40
AWAY = ("503", "502", "RemoteProtocolError")
FRONT_AWAY = ("ConnectError", "ReadError", "WriteError", "RemoteProtocolError")


@dataclass
class CellShop:
    cell: str
    business: str
    owner: str
    buyer: Buyer

    def journey(self, run: str) -> Callable[[int], Awaitable[None]]:
        """With a look at the business, as its owner takes it."""
        buys, headers = self.buyer.journey(f"{self.owner} {run}"), bearer(merchant_token(self.owner))

        async def goes(number: int) -> None:
            await buys(number)
            await self.buyer.told("GET", f"/merchant/businesses/{self.business}", headers=headers)

        return goes


async def opened(client: httpx.AsyncClient, cell: str, number: int) -> CellShop:
    """A business of that cell with a sandbox key, made through HAProxy."""
    as_admin = {**bearer(admin_token()), "X-Payagg-Cell": cell}
    owner = f"owner-{cell.lower()}-{number}"
    made = await client.post("/admin/businesses", json={"name": f"{cell} {number}", "owner": owner}, headers=as_admin)
    business = made.raise_for_status().json()["data"]["id"]
    body, as_owner = {"environment": "SANDBOX", "name": "Server"}, bearer(merchant_token(owner))
    key = await client.post(f"/merchant/businesses/{business}/api-keys", json=body, headers=as_owner)
    secret = key.raise_for_status().json()["data"]["secretKey"]
    return CellShop(cell, business, owner, Buyer([client], bearer(secret), business))


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
    raise SystemExit(f"The gateways did not reach every cell: {done.stdout}{done.stderr}")


async def cost(site: CellSite, shop: CellShop, callers: int) -> tuple[float, float]:
    """How many times as long a read takes through HAProxy, with so many callers, and the milliseconds of CPU that HAProxy
    spends on it: rounds of both ways in turn, as the machine is not the same from one moment to the next."""
    front = psutil.Process(site.processes.running[FRONT].pid).children()

    async def seconds(port: int) -> float:
        async def reads(client: httpx.AsyncClient) -> None:
            for _ in range(READS // callers):
                (await client.get("payments/context", headers=shop.buyer.key)).raise_for_status()

        async with a_client(port) as client:
            began = time.perf_counter()
            await asyncio.gather(*(reads(client) for _ in range(callers)))
            return time.perf_counter() - began

    def spent() -> float:
        return sum(sum(one.cpu_times()[:2]) for one in front)

    before, ratios = spent(), []
    for _ in range(ROUNDS):
        direct = await seconds(site.ports[shop.cell])
        ratios.append(await seconds(site.ports[FRONT]) / direct)
    return statistics.median(ratios), (spent() - before) * 1000 / READS / ROUNDS


async def phase(site: CellSite, shops: list[CellShop], name: str, seconds: float) -> dict[str, Phase]:
    """What became of the requests of each cell while that happened."""
    phases = {cell: Phase(f"{name}: {cell}") for cell in site.cells}
    for shop in shops:
        shop.buyer.phase = phases[shop.cell]
    loads = [Load(shop.journey(name), PAUSE) for shop in shops]
    async with loaded(*loads):
        await asyncio.sleep(seconds / 5)
        for act in ACTS[name]:
            await asyncio.to_thread(act, site)
        await asyncio.sleep(seconds)
    return phases


ACTS: dict[str, tuple[Callable[[CellSite], None], ...]] = {
    "three cells": (),
    f"{KILLED} killed": (lambda site: site.kill(KILLED),),
    f"{KILLED} back": (lambda site: site.start(KILLED),),
    f"{FRONT} killed": (lambda site: site.kill(FRONT), lambda site: site.start(FRONT)),
    f"{ADDED} added": (CellSite.add,),
    "four cells": (),
}


def judged(tally: RunSummary, phases: dict[str, Phase], name: str) -> int:
    """Other cells' businesses lose nothing, and the killed cell's are told 503 and nothing else, but for a request that
    HAProxy had sent it already: 502, or a connection that ends. How often."""
    refused = 0
    for cell, found in phases.items():
        away = FRONT_AWAY if name.startswith(FRONT) else AWAY if name.startswith(KILLED) and cell == KILLED else ()
        allowed = sum(count for what, count in found.failed.items() if what.startswith(away))
        wrong = [f"{found.failed.total() - allowed} requests failed"] if found.failed.total() > allowed else []
        tally.line(str(found), wrong + ["nothing was answered"] * (not found.good))
        refused += allowed
    return refused


async def events_once(site: CellSite, shops: list[CellShop]) -> dict[str, int]:
    """How many events of each cell are in its inbox once and in no other, after each was sent to both other cells."""
    sent: dict[str, list[bytes]] = {name: [] for name in site.cells}
    async with a_client(0) as client:
        for name in site.cells:
            buyer = next(shop.buyer for shop in shops if shop.cell == name)
            for number in range(EVENTS):
                buyer.asked.add(f"event {number}")
                order = {"amount": 5000, "idempotencyKey": f"event {number}"}
                made = await buyer.told("POST", "/payments/initiate", json=order, headers=buyer.key)
                assert made is not None, buyer.phase.failed
                data = {"id": number, "domain": "test", "status": "failed", "reference": made["reference"]}
                whole = {"event": "charge.failed", "data": data | {"amount": 5000, "currency": "NGN"}}
                sent[name].append(body := json.dumps(whole).encode())
                signature = hmac.new(SECRET_KEY.encode(), body, hashlib.sha512).hexdigest()
                for wrong in (other for other in site.cells if other != name):
                    address = f"{site.origin(wrong)}/api/v1/webhooks/provider_a/sandbox"
                    headers = {"x-provider_a-signature": signature}
                    (await client.post(address, content=body, headers=headers)).raise_for_status()
    inboxes: dict[str, list[bytes]] = {}
    for name in site.cells:
        with psycopg.connect(site.databases[name].url) as connection:
            rows = connection.execute("SELECT digest FROM inbox").fetchall()
        inboxes[name] = [bytes(digest) for (digest,) in rows]
    return {
        name: sum(
            all(inboxes[cell].count(hashlib.sha256(body).digest()) == (cell == name) for cell in site.cells)
            for body in sent[name]
        )
        for name in site.cells
    }


async def tried(site: CellSite, tally: RunSummary, seconds: float) -> dict[str, Any]:
    """The figures."""
    unavailable = 0
    async with a_client(0, base_url=f"{site.origin()}/api/v1") as client:
        copied = await gateways_copied(site, client)
        shops = [await opened(client, name, number) for name in NAMES for number in range(SHOPS)]
        costs = [await cost(site, shops[0], callers) for callers in CALLERS]
        for name in ACTS:
            if ADDED in site.cells:
                shops += [await opened(client, ADDED, number) for number in range(SHOPS)]
            unavailable += judged(tally, await phase(site, shops, name, seconds), name)
        arrived = await events_once(site, shops)
    for cell, count in arrived.items():
        tally.line(f"{cell}: {count} of {EVENTS} events arrived once", ["some did not"] * (count != EVENTS))
        own = [shop.buyer for shop in shops if shop.cell == cell]
        strange = [one.reference for buyer in own for one in buyer.purchases if not one.reference.startswith(cell)]
        wrong = wrongs(site.databases[cell].url, own) + [f"{one} is of another cell" for one in strange]
        tally.line(f"{cell}: what was acknowledged is there", wrong)
        doctor = site.command("doctor", cell=cell)
        tally.line(f"{cell}: doctor", [doctor.stdout] * bool(doctor.returncode))
    listed = site.command("cell", "list")
    tally.line("cell list", [listed.stdout + listed.stderr] * bool(listed.returncode))
    journeys = sum(one.status == "SUCCESS" for shop in shops for one in shop.buyer.purchases)
    return {
        "journeys": journeys,
        "unavailable": unavailable,
        "events": sum(arrived.values()),
        "slower": ", ".join(f"{ratio:.2f}" for ratio, _ in costs),
        "front_ms": ", ".join(f"{spent:.2f}" for _, spent in costs),
        "copied": round(copied),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab cells", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each phase of the load")
    seconds = parser.parse_args(arguments).seconds
    tally = RunSummary("cells", arguments)
    with a_folder("cells") as folder, three_cells_running(folder) as site:
        found = asyncio.run(tried(site, tally, seconds))
    return tally.end(whole=seconds >= 15, **found)
