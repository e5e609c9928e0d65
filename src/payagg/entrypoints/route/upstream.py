"""One cell as the router calls it: a pool of connections of its own, so that a cell that hangs stops nobody else."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

CONNECT_SECONDS = 2.0
POOL_SECONDS = 1.0
# A charge may take as long: 15 s for the provider, 8 for recording its answer.
ANSWER_SECONDS = 30.0
CONNECTIONS_MAX = 200
# Under what a crowded cell gives an idle connection, so that none is used that the cell is about to close.
IDLE_SECONDS = 4.0
CHECK_SECONDS = 3.0
NOTHING = httpx.ByteStream(b"")
Headers = Sequence[tuple[bytes, bytes]]

for _name in ("httpx", "httpcore"):  # at debug level they would write credentials
    logging.getLogger(_name).setLevel(logging.WARNING)


class Unreachable(Exception):
    """The cell gave no answer. `was_sent` is False where the request cannot have reached it."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


@dataclass(frozen=True)
class Upstream:
    """The transport of httpx without its client: cookies, redirects and credentials of URLs are no proxy's business."""

    name: str
    origin: httpx.URL
    secret: str
    transport: httpx.AsyncHTTPTransport

    @classmethod
    def to(cls, name: str, origin: str, secret: str) -> "Upstream":
        limits = httpx.Limits(
            max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX, keepalive_expiry=IDLE_SECONDS
        )
        return cls(name, httpx.URL(origin), secret, httpx.AsyncHTTPTransport(trust_env=False, limits=limits))

    async def send(self, method: str, target: bytes, headers: Headers, body: httpx.AsyncByteStream) -> httpx.Response:
        """The answer with its body still to be read, and to be closed. `target` is path and query as they came, which
        httpx would tidy. Raises Unreachable."""
        if not any(name == b"host" for name, _ in headers):  # as HTTP/1.0 may have it; what we speak to cells may not
            headers = [(b"host", self.origin.netloc), *headers]
        times = {"connect": CONNECT_SECONDS, "read": ANSWER_SECONDS, "write": ANSWER_SECONDS, "pool": POOL_SECONDS}
        request = httpx.Request(
            method, self.origin, headers=list(headers), stream=body, extensions={"timeout": times, "target": target}
        )
        try:
            return await self.transport.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unreachable(type(error).__name__, was_sent=False) from None
        except (httpx.HTTPError, OSError) as error:
            raise Unreachable(type(error).__name__, was_sent=True) from None

    async def ask(self, path: str) -> tuple[int, str]:
        """Status of an internal question, and the cell that the answer names, if any. Raises Unreachable."""
        headers = [(b"authorization", f"Bearer {self.secret}".encode())]
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                response = await self.send("GET", f"/internal/cell/{path}".encode(), headers, NOTHING)
                await response.aread()
                await response.aclose()
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unreachable(type(error).__name__, was_sent=True) from None
        return response.status_code, response.headers.get("x-payagg-cell", "")

    async def close(self) -> None:
        await self.transport.aclose()
