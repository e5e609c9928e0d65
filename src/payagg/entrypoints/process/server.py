"""One serving process: HTTP, the clock's upkeep and, unless told not to, the worker; stops cleanly on a signal."""

import asyncio
import contextlib
import gc
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from typing import Any

import structlog
import uvicorn
import uvloop
from litestar.types import ASGIApp, ControllerRouterHandler

from payagg.application.worker import run as run_worker
from payagg.entrypoints.bootstrap import CLOSE_SECONDS, Services, running
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.http.connections import UNREAD_SECONDS, OpenConnections
from payagg.entrypoints.http.uvicorn_protocol import ServerProtocol
from payagg.entrypoints.process.tracing import tracing
from payagg.entrypoints.settings import Settings, SettingsError

UNSENT_BYTES = 128 * 1024  # of a connection's answers that the kernel keeps beyond what is on its way
DRAIN_SECONDS = 20  # for requests that were accepted
CHARGE_SECONDS = 25  # for charges whose payer may have gone: a provider takes 15 at most, recording its answer 8
STOP_SECONDS = CHARGE_SECONDS + CLOSE_SECONDS  # whatever hangs, a process has ended so long after its SIGTERM
RESTART_SECONDS = 1.0
BACKLOG = 2048
FILES_MAX, FILES_KEPT = 65_536, 1_000
WORKER_NICENESS = 10
_log = structlog.get_logger("payagg.server")


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


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises SettingsError naming the port when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
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


def connections_max() -> int:
    """How many clients may be connected, once this process may open as many files as the system lets it: some are kept
    for the database, for deliveries and for logs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = FILES_MAX if soft == resource.RLIM_INFINITY else soft
    return max(files - FILES_KEPT, files // 2)


async def serve_http(
    services: Services,
    listener: socket.socket,
    stop: asyncio.Event,
    extra: Sequence[ControllerRouterHandler] = (),
    own_hosts: Collection[str] | None = None,
) -> None:
    """Answers on `listener` until `stop`, then finishes what it accepted; `own_hosts` as create_app has it."""
    app = create_app(services, extra_routes=extra, own_hosts=own_hosts)
    server = http_server(app, services.payments.entropy.hex)
    state = server.server_state
    state.most = connections_max()
    state.per_address, state.proxies = max(state.most // 4, 100), services.settings.trusted_proxies
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        until = asyncio.get_running_loop().time() + CHARGE_SECONDS
        await serving
        # A payer may have gone while a charge was under way: it is finished, not dropped.
        if services.checkout.running:
            patience = until - asyncio.get_running_loop().time()
            await asyncio.wait(services.checkout.running, timeout=max(patience, 0))
    finally:
        stopping.cancel()
        stop.set()


async def kept(name: str, work: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    """Runs `work` until `stop`, again after a pause when it fails: a fault in it must not end the process."""
    while not stop.is_set():
        try:
            await work()
        except Exception:  # noqa: BLE001 - logged whole, and the work goes on
            _log.exception("restarting", part=name)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RESTART_SECONDS)


async def run_process(
    settings: Settings,
    database_url: str,
    listener: socket.socket | None,
    *,
    with_worker: bool,
    stop: asyncio.Event | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Everything one process does until SIGINT, SIGTERM or `stop`. Raises Unavailable when the database is down."""
    stop = stop_on_signals(stop)
    with tracing(settings):
        await _run(settings, database_url, listener, stop, ready, with_worker=with_worker)


async def _run(
    settings: Settings,
    database_url: str,
    listener: socket.socket | None,
    stop: asyncio.Event,
    ready: Callable[[], None],
    *,
    with_worker: bool,
) -> None:
    async with running(settings, database_url) as services, background(services, stop, with_worker=with_worker):
        settle_memory()
        ready()
        if listener is None:
            step_back()
            await stop.wait()
        else:
            _log.info("serving", address=list(listener.getsockname()[:2]))
            await serve_http(services, listener, stop)


def step_back() -> None:
    """Lets the processes that answer requests go first: a payer waits for them, a webhook may come a moment later."""
    os.nice(WORKER_NICENESS)


def settle_memory() -> None:
    """Takes what start-up made out of the collector's rounds. A full round over it stops every request for 50 ms;
    requests themselves make no cycles worth hurrying for."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@contextlib.asynccontextmanager
async def background(services: Services, stop: asyncio.Event, *, with_worker: bool) -> AsyncIterator[None]:
    """The worker beside the block, if wanted; leaving lets it finish or hand back what it holds."""
    working = None
    if with_worker:
        working = asyncio.create_task(kept("worker", lambda: run_worker(services, stop), stop))
    try:
        yield
    finally:
        stop.set()
        if working is not None:
            await working


def stop_on_signals(stop: asyncio.Event | None = None) -> asyncio.Event:
    """An event that SIGINT or SIGTERM of this process sets."""
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


def run(main: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run` on uvloop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
