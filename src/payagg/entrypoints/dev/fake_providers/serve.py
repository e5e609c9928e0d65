"""The fakes on loopback ports of their own, inside the caller's event loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from litestar.types import ASGIApp

from payagg.entrypoints.dev.fake_providers.payaza import FakePayaza, fake_payaza
from payagg.entrypoints.dev.fake_providers.paystack import FakePaystack, fake_paystack

STOP_SECONDS = 1


class _Server(uvicorn.Server):
    """Without signal handlers: the loop is the caller's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_asgi(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """Serves `app` on loopback; yields its base URL. Port 0 = a free one."""
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it, answers take 40 ms.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    listener.setblocking(False)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


@dataclass(frozen=True)
class FakeServers:
    paystack: FakePaystack
    payaza: FakePayaza


@asynccontextmanager
async def serve_fakes(
    paystack: FakePaystack | None = None,
    payaza: FakePayaza | None = None,
    *,
    ports: tuple[int, int] = (0, 0),
    within: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> AsyncIterator[FakeServers]:
    """Both fakes, running at their `base_url`. `within` wraps each application."""
    fakes = FakeServers(paystack or FakePaystack(), payaza or FakePayaza())
    async with (
        serve_asgi(within(fake_paystack(fakes.paystack)), ports[0]) as first,
        serve_asgi(within(fake_payaza(fakes.payaza)), ports[1]) as second,
    ):
        fakes.paystack.base_url, fakes.payaza.base_url = first, second
        yield fakes
