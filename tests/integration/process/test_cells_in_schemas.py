"""Three cells in the schemas of one database, alive at once: journeys, workers, the doctor, and a move between two."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from payagg.adapters.postgres.partitions import AHEAD
from payagg.application.upkeep import worker
from tests.support.cell_schemas import rows
from tests.support.cell_world import NAMES, CellWorld, three_cells
from tests.support.processes import SECRETS, payagg
from tests.support.receivers import Receiver, listening, until

pytestmark = pytest.mark.anyio
ROLES = dict(zip(NAMES, ("payagg", "pbx", "pcx"), strict=True))
PARTITIONS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass"


@pytest.fixture
def urls(cell_urls: dict[str, str]) -> dict[str, str]:
    return {name: cell_urls[role] for name, role in ROLES.items()}


@pytest.fixture
async def world(urls: dict[str, str]) -> AsyncIterator[tuple[CellWorld, Receiver, int]]:
    """Each cell with its worker; a merchant's server for webhooks."""
    receiver, stop = Receiver(), asyncio.Event()
    async with listening(receiver.talk) as port, three_cells(list(urls.values())) as world, AsyncExitStack() as stack:
        for cell in world.cells.values():
            working = asyncio.create_task(worker.run(cell.api.services, stop))
            stack.push_async_callback(asyncio.wait_for, working, None)
        yield world, receiver, port
        stop.set()


def doctors(urls: dict[str, str]) -> list[str]:
    done = [payagg("doctor", PAYAGG_DATABASE_URL=url) for url in urls.values()]
    return [one.stdout + one.stderr for one in done if one.returncode != 0 or "0 anomalies." not in one.stdout]


async def test_they_live_in_one_database_and_a_business_moves_from_one_to_another(
    world: tuple[CellWorld, Receiver, int], urls: dict[str, str]
) -> None:
    cells, receiver, port = world
    shops = await cells.shops()
    references = {}
    for name, cell in cells.cells.items():
        shop, client = shops[name], cell.api.client
        hook = {"url": f"http://127.0.0.1:{port}/{name}", "environment": "SANDBOX"}
        (await client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=hook)).raise_for_status()
        references[name] = (await cell.api.initiate(shop))["reference"]
        paid = {"outcome": "SUCCESS"}
        path = f"/payments/{references[name]}/simulate"
        (await client.post(path, headers=shop.as_sandbox, json=paid)).raise_for_status()
    await until(lambda: set(receiver.told("payment.success")) == set(references.values()))
    for name, url in urls.items():
        assert rows(url, "SELECT reference FROM payments") == [(references[name],)]
        # Three cells that share a database step back before each other, by seconds each time.
        await until(lambda url=url: rows(url, PARTITIONS) == [(AHEAD + 2,)], seconds=300)  # type: ignore[misc]
        await until(lambda url=url: not rows(url, "SELECT FROM deliveries WHERE status = 'PENDING'"))  # type: ignore[misc]
    assert await asyncio.to_thread(doctors, urls) == []

    settings = {
        **SECRETS,
        "PAYAGG_REFERENCE_PREFIX": "PBX",
        "PAYAGG_DATABASE_URL": urls["PBX"],
        "PAYAGG_CELLS": ",".join(f"{name}={origin}" for name, origin in cells.settings.cells),
        "PAYAGG_CELL_SECRET": cells.settings.cell_secret or "",
    }
    move = ("cell", "move", shops["PBX"].business.id, "--to", "PCX")
    # A URL of the same database, but of another schema.
    refused = await asyncio.to_thread(payagg, *move, **settings, PAYAGG_TARGET_DATABASE_URL=urls["PAY"])
    assert "is not the database that the cell PCX answers from" in refused.stderr
    assert rows(urls["PBX"], "SELECT count(*) FROM payments") == [(1,)]
    done = await asyncio.to_thread(payagg, *move, **settings, PAYAGG_TARGET_DATABASE_URL=urls["PCX"])
    assert "1 payments moved in this run" in done.stdout + done.stderr, done.stderr
    assert rows(urls["PBX"], "SELECT count(*) FROM payments") == [(0,)]
    assert sorted(rows(urls["PCX"], "SELECT reference FROM payments")) == [(references["PBX"],), (references["PCX"],)]
    read = await cells.client.get(f"/payments/{references['PBX']}", headers=shops["PBX"].as_sandbox)
    assert read.json()["data"]["status"] == "SUCCESS"
    assert await asyncio.to_thread(doctors, urls) == []
