"""Calls from one cell, or from an operator, to another: JSON under /internal/cell, proven by the cells' secret."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from payagg.application.ports.cells import EventAnswer
from payagg.application.ports.outside import Unavailable
from payagg.application.schemas.cells import CellState
from payagg.domain.cells import Cells
from payagg.domain.errors import ErrorCode, Kind, Refusal
from payagg.domain.gateway import Gateway

CONNECT_SECONDS = 2.0
CALL_SECONDS = 8.0
CONNECTIONS_MAX = 50
HOPS = 2  # an event's: to the cell that made the reference, and to where that says that it is now
INTERNAL = "/internal/cell"
T = TypeVar("T")


class _Error(msgspec.Struct):
    code: str
    message: str = ""


class _Refused(msgspec.Struct):
    error: _Error


class HttpCells:
    """The other cells over HTTP. An answer that is not the expected one is Unavailable: another release may be there,
    or something else altogether."""

    def __init__(self, cells: Cells, secret: str) -> None:
        self._cells = cells
        self._client = httpx.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(CALL_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=4.0),
            headers={"Authorization": f"Bearer {secret}", "Accept-Encoding": "identity"},
        )

    async def home_gateways(self) -> list[Gateway]:
        answer = await self._get(self._cells.home, f"{INTERNAL}/gateways")
        return _decode(answer, list[Gateway])

    async def home_logo(self, gateway_id: str) -> bytes:
        path = f"/api/v1/public/gateways/{quote(gateway_id, safe='')}/logo"
        return (await self._get(self._cells.home, path)).content

    async def state(self, cell: str) -> CellState:
        """What a cell says of itself."""
        return _decode(await self._get(cell, INTERNAL), CellState)

    async def hand_on(self, cell: str, path: str, body: bytes, headers: Mapping[str, str]) -> EventAnswer:
        # The provider's own headers alone: the signature is one of them.
        own = {name: value for name, value in headers.items() if name.startswith("x-") or name == "content-type"}
        for _ in range(HOPS):
            answer = await self._send("POST", cell, f"{INTERNAL}/events{path}", body, own)
            if answer.status_code == httpx.codes.OK:
                return EventAnswer(None)
            moved = answer.headers.get("x-payagg-cell", "")
            if answer.status_code != httpx.codes.MISDIRECTED_REQUEST or moved not in self._cells.others:
                break
            cell = moved
        error = _decode(answer, _Refused).error
        if error.code not in ErrorCode.__members__ or ErrorCode[error.code].kind in (Kind.MISDIRECTED, Kind.FAULT):
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")
        if error.code in (ErrorCode.SERVICE_UNAVAILABLE.name, ErrorCode.UNAUTHORIZED.name):
            raise Unavailable(f"the cell {cell} did not take the event: {error.message}")
        return EventAnswer(error.code, error.message)

    async def close(self) -> None:
        await self._client.aclose()

    async def _get(self, cell: str, path: str) -> httpx.Response:
        answer = await self._send("GET", cell, path, None, {})
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")
        return answer

    async def _send(
        self, method: str, cell: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> httpx.Response:
        try:
            return await self._client.request(
                method, self._cells.origins[cell] + path, content=body, headers=dict(headers)
            )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unavailable(f"the cell {cell} cannot be reached: {type(error).__name__}") from None


def _decode(answer: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, Refusal):
        raise Unavailable("a cell's answer is not what this release reads") from None
