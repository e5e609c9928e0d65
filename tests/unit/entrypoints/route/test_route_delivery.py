"""What the router does when a cell says "not here", says "not this key", or says nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from payagg.adapters.system import SystemEntropy
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.server.places import By, Destination
from payagg.entrypoints.route.app import RouterApp
from payagg.entrypoints.route.directory import CHECK_AGAIN_SECONDS
from payagg.entrypoints.route.messages import Incoming
from payagg.entrypoints.route.proxy import CellProxy
from payagg.entrypoints.route.upstream import Unreachable
from tests.support.assembly import SETTINGS
from tests.unit.entrypoints.route.cells import FakeCell

pytestmark = pytest.mark.anyio
LIST = b'{"success":true,"data":{"businesses":[{"id":"biz_1"}]}}'
KEY = Destination(By.KEY, "0" * 64)
PAGE = Destination(By.REFERENCE, "PAY-20250131-7K2M9X")
OTHER_REFUSAL = b'{"error":{"code":"UNAUTHORIZED"}}'
INVALID = b'{"success":false,"error":{"code":"INVALID_API_KEY"}}'


OK = (200, b"fine")
REFUSED = Unreachable("ConnectError", was_sent=False)
BROKEN = Unreachable("ReadError", was_sent=True)


def a_request(method: str = "POST", rest: AsyncIterator[bytes] | None = None) -> Incoming:
    return Incoming(method, b"/", [], b"body", rest)


async def asked_of(proxy: CellProxy, request: Incoming, place: Destination) -> tuple[str, int]:
    """The cell that answered and its status; the refusal's code where the router answered."""
    try:
        cell, response = await proxy.deliver(request, place, (("192.0.2.1", 1),))
    except Refusal as refusal:
        return refusal.code.name, 0
    return cell, response.status_code


def proxy_of(**cells: FakeCell) -> CellProxy:
    return CellProxy(cells, guesses_max=100)


AWAY = (ErrorCode.SERVICE_UNAVAILABLE.name, 0)


async def test_what_may_have_been_done_is_not_sent_twice() -> None:
    cell = FakeCell(answers=[BROKEN, OK])
    assert await asked_of(proxy_of(PAY=cell), a_request("POST"), PAGE) == AWAY
    assert cell.sent == [b"body"]


async def test_a_read_whose_connection_broke_is_sent_once_more() -> None:
    cell = FakeCell(answers=[BROKEN, OK])
    assert await asked_of(proxy_of(PAY=cell), a_request("GET"), PAGE) == ("PAY", 200)
    dead = FakeCell(answers=[BROKEN])
    assert await asked_of(proxy_of(PAY=dead), a_request("GET"), PAGE) == AWAY
    assert len(dead.sent) == 2


async def test_421_is_followed_with_the_body_and_not_for_ever() -> None:
    there, here = FakeCell(answers=[(421, b"", "PBX")]), FakeCell(answers=[OK])
    assert await asked_of(proxy_of(PAY=there, PBX=here), a_request(), PAGE) == ("PBX", 200)
    assert here.sent == [b"body"]
    circle = FakeCell(answers=[(421, b"", "PBX")]), FakeCell(answers=[(421, b"", "PAY")])
    assert await asked_of(proxy_of(PAY=circle[0], PBX=circle[1]), a_request(), PAGE) == AWAY
    assert len(circle[0].sent) + len(circle[1].sent) == 3


async def test_a_long_body_goes_right_the_second_time() -> None:
    async def rest() -> AsyncIterator[bytes]:
        yield b" and more"

    there, here = FakeCell(answers=[(421, b"", "PBX")]), FakeCell(answers=[OK])
    proxy = proxy_of(PAY=there, PBX=here)
    assert await asked_of(proxy, a_request(rest=rest()), PAGE) == AWAY
    assert await asked_of(proxy, a_request(rest=rest()), PAGE) == ("PBX", 200)
    assert here.sent == [b"body and more"]


@pytest.mark.parametrize(
    ("kept", "asked", "other", "expected"),
    [
        pytest.param(REFUSED, 0, 200, ("PBX", 200), id="moved from a cell that is gone"),
        pytest.param((401, INVALID), 404, 200, ("PBX", 200), id="moved"),
        pytest.param((401, INVALID), 200, 404, ("PAY", 401), id="revoked: its cell knows it"),
        pytest.param((401, INVALID), 404, 404, ("PAY", 401), id="gone"),
        pytest.param((401, INVALID), 404, 0, AWAY, id="it may have moved to the cell that is away"),
        pytest.param((401, OTHER_REFUSAL), 404, 200, ("PAY", 401), id="another refusal is passed on as it is"),
    ],
)
async def test_a_key_that_its_cell_denies_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, kept: Any, asked: int, other: int, expected: tuple[str, int]
) -> None:
    # As if what is kept had been asked long ago.
    monkeypatch.setattr("payagg.entrypoints.route.directory.CHECK_AGAIN_SECONDS", -CHECK_AGAIN_SECONDS)
    proxy = proxy_of(PAY=FakeCell(answers=[kept], said=(asked, "")), PBX=FakeCell(answers=[OK], said=(other, "")))
    proxy.directory.keep(KEY, "PAY")
    assert await asked_of(proxy, a_request(), KEY) == expected
    if expected == ("PBX", 200):
        assert proxy.directory.find(KEY) == "PBX"


async def test_a_dead_cells_key_is_asked_about_now_and_then_alone() -> None:
    other = FakeCell(answers=[OK], said=(200, ""))
    proxy = proxy_of(PAY=FakeCell(answers=[REFUSED], said=(0, "")), PBX=other)
    proxy.directory.keep(KEY, "PAY")
    assert await asked_of(proxy, a_request(), KEY) == AWAY
    assert other.sent == []


async def test_a_frozen_cell_is_missing_in_a_users_list_and_does_not_hold_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("payagg.entrypoints.route.app.CHECK_SECONDS", 0.01)
    cells = {"PAY": FakeCell(answers=[(200, LIST)]), "PBX": FakeCell(is_frozen=True)}
    app = RouterApp(SETTINGS, cells, SystemEntropy("PAY").hex)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://router") as client:
        async with asyncio.timeout(10):  # an end where it would hang
            listed = await client.get("/api/v1/merchant/businesses", headers={"Authorization": "Bearer token"})
    assert listed.json()["data"]["businesses"] == [{"id": "biz_1"}]
    assert listed.headers["x-payagg-cells-away"] == "PBX"
