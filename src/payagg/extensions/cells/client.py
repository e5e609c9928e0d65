"""Calls from one cell, or from an operator, to another: JSON under /internal/cell, proven by the cells' secret."""

import asyncio
from collections.abc import Awaitable, Collection, Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from payagg.application.ports.outside import Unavailable
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
OK, NOT_MODIFIED, NOT_FOUND, MISDIRECTED = 200, 304, 404, 421
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
        return _decode(await self._call(self._cells.home, f"{INTERNAL}/gateways"), list[Gateway])

    async def home_logo(self, gateway_id: str) -> bytes:
        path = f"/api/v1/public/gateways/{quote(gateway_id, safe='')}/logo"
        return (await self._call(self._cells.home, path)).content

    async def state(self, cell: str) -> CellState:
        """What a cell says of itself."""
        return _decode(await self._call(cell, INTERNAL), CellState)

    async def names(self, cell: str, digest: str) -> tuple[CellNames, str] | None:
        """What a cell has, and the digest of that; None where it is what `digest` is of."""
        known = {"If-None-Match": digest}
        answer = await self._call(cell, f"{INTERNAL}/names", headers=known, statuses=(OK, NOT_MODIFIED))
        if answer.status_code == NOT_MODIFIED:
            return None
        return _decode(answer, CellNames), answer.headers.get("etag", "")

    async def hand_over(self, cell: str, event: bytes) -> None:
        """`event` is sealed. Returning means that `cell` has handled it."""
        await self._call(cell, f"{INTERNAL}/events", "POST", content=event)

    async def find(self, place: str) -> str | None:
        """The cell that has the key or the business (`keys/` or `businesses/` and its name), None where none has."""
        asking = [asyncio.create_task(or_away(self._has(cell, place))) for cell in self._cells.others]
        failure = None
        try:
            for answer in asyncio.as_completed(asking):  # the first that has it decides: another one may be frozen
                found = await answer
                if isinstance(found, Unavailable):
                    failure = found
                elif found is not None:
                    return found
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
                answer = await self._call(cell, f"{INTERNAL}/{place}", statuses=(OK, NOT_FOUND, MISDIRECTED))
        except TimeoutError:
            raise Unavailable(f"the cell {cell} did not answer in time") from None
        if answer.status_code == MISDIRECTED:
            return self._named(answer, cell)
        return cell if answer.status_code == OK else None

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
            if answer.status_code != MISDIRECTED:
                return answer
            cell = self._named(answer, cell)
        raise Unavailable(f"every cell names another one, the last {cell}")

    def _named(self, answer: httpx.Response, cell: str) -> str:
        """The other cell that `cell` says has it."""
        named = str(answer.headers.get("x-payagg-cell", ""))
        if named not in self._cells.others:
            raise Unavailable(f"the cell {cell} does not have it, and names no other that can be asked")
        return named

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def _call(
        self, cell: str, path: str, method: str = "GET", statuses: Collection[int] = (OK,), **sent: Any
    ) -> httpx.Response:
        """An answer of one of `statuses`."""
        answer = await self._answer_of(
            cell, self._clients[cell].request(method, self._cells.origins[cell] + path, **sent)
        )
        if answer.status_code not in statuses:
            raise Unavailable(f"the cell {cell} answered {answer.status_code}")
        return answer

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
