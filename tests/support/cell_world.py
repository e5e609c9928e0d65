"""Three cells on loopback, each cell with a database of its own on the tests' server."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.process.http_server import listen
from payagg.entrypoints.settings import Settings
from payagg.extensions.cells.settings import CellSettings
from tests.support.assembly import SETTINGS, named, services_over
from tests.support.http_world import Api, Shop, started
from tests.support.machine import ROOT

NAMES = ("PAY", "PBX", "PCX")
SECRET = "a-secret-between-cells-of-the-tests"
LOOPBACK = (ip_network("127.0.0.0/8"),)


def event_about(reference: str, note: str = "") -> tuple[bytes, dict[str, str]]:
    """That it was paid, as provider_a signs it with the key of `Api.open_gateways`: the body and its headers."""
    data = {"id": 5, "domain": "test", "status": "success", "reference": reference, "amount": 1000, "currency": "NGN"}
    body = json.dumps({"event": "charge.success", "data": data | {"note": note}}).encode()
    return body, {"x-provider_a-signature": hmac.new(b"sk_test_" + b"a" * 40, body, hashlib.sha512).hexdigest()}


def haproxy_text(folder: Path, port: int, cells: Mapping[str, str]) -> str:
    """The file that we ship, at that port, with a backend for each of `cells`, given with their addresses; maps and
    socket are in `folder`."""
    shown = (ROOT / "deploy" / "cells" / "haproxy.cfg").read_text(encoding="utf-8")
    shown = shown.replace("bind :8000", f"bind 127.0.0.1:{port}").replace("/var/lib/payagg-maps", str(folder))
    head, *_, last = shown.replace("src 10.89.200.1", "src 127.0.0.1").split("\nbackend ")
    assert last.startswith("PBX")
    own = (last.replace("pbx-api:8000", address).replace("PBX", name) for name, address in cells.items())
    return "\nbackend ".join([head, *own])


@dataclass
class Cell:
    """One cell. `kill` ends its server at once, and whoever calls it then is refused a connection."""

    api: Api
    kill: Callable[[], Awaitable[None]]


@dataclass
class CellWorld:
    cells: Mapping[str, Cell]
    settings: Settings = field(repr=False)

    async def shops(self) -> dict[str, Shop]:
        return {name: await cell.api.open_shop() for name, cell in self.cells.items()}

    async def replicate_gateways(self) -> None:
        for cell in self.cells.values():
            for sweep in cell.api.services.sweeps_of_extensions():
                await sweep.work()


async def served_app(app: Any, listener: Any, new_id: Any) -> Callable[[], Awaitable[None]]:
    """What ends a server of `app`."""
    server, running = await started(app, listener, new_id)

    async def stop() -> None:
        server.should_exit = server.force_exit = True
        with suppress(asyncio.CancelledError):
            await running
        listener.close()
        connections: Any = list(server.server_state.connections)
        for connection in connections:
            connection.transport.abort()

    return stop


@asynccontextmanager
async def three_cells(databases: Sequence[str], **changed: Any) -> AsyncIterator[CellWorld]:
    """The first of `databases` is the home cell's."""
    async with AsyncExitStack() as stack:
        listeners = [listen("127.0.0.1", 0) for _ in NAMES]
        origins = tuple(
            (name, f"http://127.0.0.1:{one.getsockname()[1]}") for name, one in zip(NAMES, listeners, strict=True)
        )
        own = (CellSettings(origins, SECRET),)
        shared = replace(SETTINGS, own=own, trusted_proxies=LOOPBACK, **changed)
        cells: dict[str, Cell] = {}
        for (name, origin), listener, url in zip(origins, listeners, databases, strict=True):
            store = PostgresStore(url, pool_size=5, pgbouncer=False)
            stack.push_async_callback(store.close)
            services = services_over(store, replace(shared, reference_prefix=name))
            stack.push_async_callback(services.elsewhere.close)
            await seed_gateways(services.gateways, "builtin", named("provider_a", "provider_b"))
            stop = await served_app(create_app(services), listener, services.payments.entropy.hex)
            stack.push_async_callback(stop)
            client = await stack.enter_async_context(
                httpx.AsyncClient(base_url=f"{origin}/api/v1", timeout=30, verify=False)
            )
            cells[name] = Cell(Api(services, origin, client), stop)
        yield CellWorld(cells, shared)
