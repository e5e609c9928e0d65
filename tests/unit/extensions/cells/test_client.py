"""Calls between cells, with other cells on loopback that answer as the test says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from payagg.extensions.cells import client as adapter
from payagg.extensions.cells.client import HttpCells
from payagg.extensions.cells.domain import Cells


@asynccontextmanager
async def cell(status: int) -> AsyncIterator[str]:
    """The origin of one that answers every request with that status."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n\r\n" % status)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname())


async def test_calls_that_are_cancelled_at_any_step_keep_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CONNECTIONS_MAX": 4, "POOL_SECONDS": 20, "CHECK_SECONDS": 20}.items():
        monkeypatch.setattr(adapter, name, value)
    async with cell(404) as pbx:
        cells = HttpCells(Cells("PAY", {"PAY": "http://127.0.0.1:1", "PBX": pbx}), "secret")
        for steps in range(60):
            calls = [asyncio.create_task(cells.find("businesses/b")) for _ in range(4)]
            for _ in range(steps):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert await cells.find("businesses/b") is None
        await cells.aclose()
