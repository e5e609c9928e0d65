"""Calls from one cell, or from an operator, to another: JSON under /internal/cell, proven by the cells' secret."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from payagg.application.ports.outside import Unavailable
from payagg.application.ports.providers import ProviderEvent
from payagg.domain.errors import Refusal
from payagg.domain.gateway import Gateway
from payagg.extensions.cells.domain import CellNames, Cells, CellState

CONNECT_SECONDS = 2.0
POOL_SECONDS = 1.0
CALL_SECONDS = 8.0
# A charge may take as long: 15 s for the provider, 8 for recording its answer.
FORWARD_SECONDS = 30.0
CHECK_SECONDS = 3.0
CONNECTIONS_MAX = 50
HOPS = 3  # to the cell that made the reference, to where that says that it is now, and once more
INTERNAL = "/internal/cell"
T = TypeVar("T")


class HttpCells:
    """The other cells over HTTP. An answer that is not the expected one is Unavailable: another release may be there,
    or something else altogether."""

    def __init__(self, cells: Cells, secret: str) -> None:
        self._cells = cells
        # Connections of its own for each cell, so that one which hangs holds up no other.
        self._clients = {
            name: httpx.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=httpx.Timeout(CALL_SECONDS, connect=CONNECT_SECONDS, pool=POOL_SECONDS),
                limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=4.0),
                headers={"Authorization": f"Bearer {secret}", "Accept-Encoding": "identity"},
            )
            for name in cells.origins
        }

    async def home_gateways(self) -> list[Gateway]:
        """Every gateway of the home cell, deleted ones too."""
        answer = await self._get(self._cells.home, f"{INTERNAL}/gateways")
        return _decode(answer, list[Gateway])

    async def home_logo(self, gateway_id: str) -> bytes:
        path = f"/api/v1/public/gateways/{quote(gateway_id, safe='')}/logo"
        return (await self._get(self._cells.home, path)).content

    async def state(self, cell: str) -> CellState:
        """What a cell says of itself."""
        return _decode(await self._get(cell, INTERNAL), CellState)

    async def names(self, cell: str, digest: str) -> tuple[CellNames, str] | None:
        """What a cell has, and the digest of that; None where it is what `digest` is of."""
        answer = await self._send("GET", cell, f"{INTERNAL}/names", None, {"If-None-Match": digest})
        if answer.status_code == httpx.codes.NOT_MODIFIED:
            return None
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")
        return _decode(answer, CellNames), answer.headers.get("etag", "")

    async def hand_over(self, cell: str, event: ProviderEvent) -> None:
        """Returning means that `cell` has handled it."""
        answer = await self._send("POST", cell, f"{INTERNAL}/events", msgspec.json.encode(event), {})
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")

    async def find(self, place: str) -> str | None:
        """The cell that has the key or the business (`keys/` or `businesses/` and its name), None where none has."""
        asking = [asyncio.create_task(self._has(cell, place)) for cell in self._cells.others]
        failure = None
        try:
            for answer in asyncio.as_completed(asking):  # the first that has it decides: another one may be frozen
                try:
                    cell = await answer
                except Unavailable as error:
                    failure = error
                    continue
                if cell is not None:
                    return cell
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        if failure is not None:
            raise failure
        return None

    async def _has(self, cell: str, place: str) -> str | None:
        """`cell` where it has it, or the cell that it names, None where it never had it."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                answer = await self._send("GET", cell, f"{INTERNAL}/{place}", None, {})
        except TimeoutError:
            raise Unavailable(f"the cell {cell} did not answer in time") from None
        moved = answer.headers.get("x-payagg-cell", "")
        if answer.status_code == httpx.codes.MISDIRECTED_REQUEST and moved in self._cells.others:
            return str(moved)
        if answer.status_code not in (httpx.codes.OK, httpx.codes.NOT_FOUND):
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")
        return cell if answer.status_code == httpx.codes.OK else None

    async def forward(
        self, cell: str, method: str, target: bytes, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> httpx.Response:
        """Sends a client's request to `cell`, or to where that says that it is for."""
        # `target` as it came, which httpx would tidy.
        times = httpx.Timeout(FORWARD_SECONDS, connect=CONNECT_SECONDS, pool=POOL_SECONDS).as_dict()
        own = [*headers, (b"accept-encoding", b"identity")]
        for _ in range(HOPS):
            request = httpx.Request(
                method, self._cells.origins[cell], headers=own, content=body,
                extensions={"timeout": times, "target": target},
            )  # fmt: skip
            answer = await self._answer_of(cell, self._clients[cell].send(request))
            moved = answer.headers.get("x-payagg-cell", "")
            if answer.status_code != httpx.codes.MISDIRECTED_REQUEST:
                return answer
            if moved not in self._cells.others:
                break
            cell = moved
        raise Unavailable(f"the cell {cell} does not have it, and names no other that can be asked")

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def _get(self, cell: str, path: str) -> httpx.Response:
        answer = await self._send("GET", cell, path, None, {})
        if answer.status_code != httpx.codes.OK:
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")
        return answer

    async def _send(
        self, method: str, cell: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> httpx.Response:
        url = self._cells.origins[cell] + path
        return await self._answer_of(
            cell, self._clients[cell].request(method, url, content=body, headers=dict(headers))
        )

    async def _answer_of(self, cell: str, asking: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        # Whoever waits may be cancelled, the request is not: httpx 0.28 never gives back the place in the pool of one
        # that is cancelled as it gets its connection. Its own timeouts end it.
        task = asyncio.create_task(asking)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(task)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unavailable(f"the cell {cell} cannot be reached: {type(error).__name__}") from None


async def or_away(asking: Awaitable[T]) -> T | Unavailable:
    """The answer, or why there is none."""
    try:
        return await asking
    except Unavailable as error:
        return error


def _decode(answer: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, Refusal):
        raise Unavailable("a cell's answer is not what this release reads") from None
