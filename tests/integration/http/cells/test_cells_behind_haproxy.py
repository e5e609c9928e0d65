"""Three cells behind a real HAProxy with maps of what each has, with deploy/cells/haproxy.cfg."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import httpx

from lab.kit.processes import Processes
from payagg.entrypoints.cli.arguments import parser
from payagg.extensions.cells.command import cell
from tests.support.cell_world import NAMES, SECRET, CellWorld, haproxy_text, three_cells
from tests.support.http_world import Api, Shop, assert_refused, bearer
from tests.support.machine import program
from tests.support.ports import free_port


async def write_maps(world: CellWorld, folder: Path, *options: str) -> int:
    """The exit status of `payagg cell map`."""
    chosen = parser().parse_args(["cell", "map", "--out", str(folder), *options])
    return await asyncio.to_thread(cell, chosen, world.settings)


@asynccontextmanager
async def behind_haproxy(
    new_database: Callable[[], AbstractContextManager[str]], folder: Path
) -> AsyncIterator[tuple[CellWorld, Api]]:
    """The maps are of before the first shop."""
    port, file = free_port(), folder / "haproxy.cfg"
    with new_database() as first, new_database() as second, new_database() as third, Processes(folder) as processes:
        async with three_cells([first, second, third]) as world:
            assert await write_maps(world, folder) == 0
            cells = {name: own.api.origin.removeprefix("http://") for name, own in world.cells.items()}
            file.write_text(haproxy_text(folder, port, cells))
            processes.start("haproxy", [program("haproxy"), "-db", "-f", str(file)])
            connect = httpx.AsyncHTTPTransport(retries=5)
            origin = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=f"{origin}/api/v1", transport=connect, timeout=30) as client:
                await client.get("/payments/context")  # HAProxy listens
                yield world, Api(world.cells["PAY"].api.services, origin, client)


async def assert_served(front: Api, cell: str, shop: Shop) -> None:
    reference = (await front.initiate(shop))["reference"]
    assert reference.startswith(cell)
    for path, headers in (
        (f"/public/payments/{reference}", {}),
        (f"/payments/{reference}", shop.as_sandbox),
        ("/payments/context", shop.as_sandbox),
        (shop.path, shop.as_owner),
    ):
        await front.get(path, headers)


async def test_the_home_cell_sends_on_what_haproxy_cannot_tell_and_may_be_down(
    new_database: Callable[[], AbstractContextManager[str]], tmp_path: Path
) -> None:
    async with behind_haproxy(new_database, tmp_path) as (world, front):
        shops, client = await world.shops(), front.client
        for name, shop in shops.items():
            await assert_served(front, name, shop)
        assert len((await front.get("/merchant/businesses", shop.as_owner))["businesses"]) == len(NAMES)
        for path in ("/internal/cell", "/%69nternal/cell/names"):
            closed = await client.get(front.origin + path, headers=bearer(SECRET))
            assert closed.status_code == 404
            assert "x-payagg-cell" not in closed.headers
        stranger = bearer("ssk_sand_" + "0" * 48)
        assert_refused(await client.get("/payments/context", headers=stranger), 401, "INVALID_API_KEY")

        assert await write_maps(world, tmp_path, "--haproxy", f"{tmp_path}/admin.sock") == 0
        await world.cells["PAY"].kill()
        for name in NAMES[1:]:
            await assert_served(front, name, shops[name])
        away = await client.get("/payments/context", headers=shops["PAY"].as_sandbox)
        assert_refused(away, 503, "SERVICE_UNAVAILABLE")
        assert int(away.headers["Retry-After"]) > 0
        assert (await client.get("/payments/context", headers=stranger)).status_code == 503
        # Its lines stay, so that nothing but the cell itself is to come back.
        before = (tmp_path / "keys.map").read_text()
        assert await write_maps(world, tmp_path, "--haproxy", f"{tmp_path}/admin.sock") == 1
        assert sorted((tmp_path / "keys.map").read_text().splitlines()) == sorted(before.splitlines())
        await assert_served(front, "PBX", shops["PBX"])
