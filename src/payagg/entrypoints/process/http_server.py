"""Uvicorn as we run it, and the socket and the address that it answers on."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import uvicorn
from litestar.types import ASGIApp

from payagg.application.webhooks.dispatcher import CONCURRENT
from payagg.domain.values import LOOPBACK
from payagg.entrypoints.environment import text_of
from payagg.entrypoints.http.server.connections import UNREAD_SECONDS, OpenConnections
from payagg.entrypoints.http.server.uvicorn_protocol import ServerProtocol
from payagg.entrypoints.settings import Settings, SettingsError

UNSENT_BYTES = 128 * 1024  # of a connection's answers that the kernel keeps beyond what is on its way
DRAIN_SECONDS = 20  # for requests that were accepted
BACKLOG = 2048
FILES_MAX = 65_536
# From clients: a delivery's look-up takes two, an idle connection to a merchant one; the others are for the database,
# providers and logs. Where the system allows few, clients get half.
FILES_KEPT = 3 * CONCURRENT + 300


class QuietServer(uvicorn.Server):
    """Uvicorn without its own signal handling: the process has more to stop than HTTP."""

    def __init__(self, config: uvicorn.Config, new_id: Callable[[int], str]) -> None:
        super().__init__(config)
        self.server_state: OpenConnections = OpenConnections(new_id)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        watching = asyncio.create_task(self.server_state.watch())
        try:
            await super().serve(sockets)
        finally:
            watching.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.server_state.is_closing = True
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def with_own_address(settings: Settings, environ: Mapping[str, str], host: str, port: int) -> Settings:
    """Links lead to where it is served, where no PAYAGG_BASE_URL says otherwise. Raises SettingsError where only this
    machine would know them."""
    if text_of(environ, "PAYAGG_BASE_URL")[0] is not None:
        return settings
    if host not in LOOPBACK:
        raise SettingsError(
            f"PAYAGG_BASE_URL is required to serve on {host}: payers' browsers must reach the links it begins."
        )
    return replace(settings, base_url=f"http://{f'[{host}]' if ':' in host else host}:{port}")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises SettingsError naming the port when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only where the protocol is named; uvloop does so always.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Each connection inherits it: one whose client neither reads nor acknowledges an answer is given up.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_SECONDS * 1000))
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"Port {port} on {host} cannot be used ({error.strerror}): choose another with --port."
        ) from None
    listener.setblocking(False)
    return listener


def http_server(app: ASGIApp, new_id: Callable[[int], str]) -> QuietServer:
    """Uvicorn as we run it. Addresses are our middleware's business; `new_id` makes request ids of so many bytes."""
    return QuietServer(
        uvicorn.Config(
            app,
            interface="asgi3",
            http=ServerProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        ),
        new_id,
    )


def raise_file_limit() -> int:
    """Lets this process open as many files as the system does, up to FILES_MAX; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return FILES_MAX if soft == resource.RLIM_INFINITY else soft


def connections_max() -> int:
    """How many clients may be connected: some files are kept for the database, for deliveries and for logs."""
    files = raise_file_limit()
    return max(files - FILES_KEPT, files // 2)
