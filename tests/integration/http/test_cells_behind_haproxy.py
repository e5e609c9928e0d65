"""Three cells behind a real HAProxy that looks at references alone, as docs/cells.md has it."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from lab.kit.processes import Processes
from tests.support.cell_world import NAMES, CellWorld, three_cells
from tests.support.http_world import assert_refused, bearer
from tests.support.machine import ROOT, program
from tests.support.ports import free_port

pytestmark = pytest.mark.anyio


def configuration(world: CellWorld, port: int) -> str:
    """Of the guide, behind what deploy/haproxy.cfg begins with."""
    head = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8").partition("\nfrontend ")[0]
    guide = (ROOT / "docs" / "cells.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```text\n(frontend payagg\n.*?)```", guide, re.DOTALL)
    shown = shown.replace("bind :8000", f"bind 127.0.0.1:{port}").replace(" check\n", "\n")
    for name, cell in world.cells.items():
        shown = re.sub(rf"(server {name.lower()}) \S+", rf"\1 {cell.api.origin.removeprefix('http://')}", shown)
    return f"{head}\n{shown}"


async def test_what_haproxy_cannot_tell_the_home_cell_sends_on(
    new_database: Callable[[], AbstractContextManager[str]], tmp_path: Path
) -> None:
    port, file = free_port(), tmp_path / "haproxy.cfg"
    with new_database() as first, new_database() as second, new_database() as third, Processes(tmp_path) as processes:
        async with three_cells([first, second, third]) as world:
            file.write_text(configuration(world, port))
            processes.start("haproxy", [program("haproxy"), "-db", "-f", str(file)])
            connect = httpx.AsyncHTTPTransport(retries=5)
            origin = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=f"{origin}/api/v1", transport=connect, timeout=30) as client:
                for name, shop in (await world.shops()).items():
                    asked = await client.post("/payments/initiate", json={"amount": 1000}, headers=shop.as_sandbox)
                    assert asked.status_code == 201, asked.text
                    reference = asked.json()["data"]["reference"]
                    assert reference.startswith(name)
                    for path, headers in (
                        (f"/public/payments/{reference}", {}),
                        (f"/payments/{reference}", shop.as_sandbox),
                        (shop.path, shop.as_owner),
                    ):
                        read = await client.get(path, headers=headers)
                        assert read.status_code == 200, read.text
                listed = await client.get("/merchant/businesses", headers=shop.as_owner)
                assert len(listed.json()["data"]["businesses"]) == len(NAMES)
                secret = bearer(world.settings.cell_secret or "")
                closed = await client.get(f"{origin}/internal/cell", headers=secret)
                assert closed.status_code == 404
                assert "x-payagg-cell" not in closed.headers
                unknown = await client.get("/payments/context", headers=bearer("ssk_sand_" + "0" * 48))
                assert_refused(unknown, 401, "INVALID_API_KEY")
