"""One serving process: HTTP, the clock's upkeep and, unless told not to, the worker; stops cleanly on a signal."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from itertools import count
from pathlib import Path

import structlog
from litestar.types import ControllerRouterHandler

from payagg.application.gateways.readiness import live_slugs, unbound_slugs
from payagg.application.ports.outside import Unavailable
from payagg.application.telemetry import observe, observe_bytes
from payagg.entrypoints.bootstrap import CLOSE_SECONDS, Services, running
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.process.http_server import connections_max, http_server, raise_file_limit
from payagg.entrypoints.process.logs import FLUSH_SECONDS
from payagg.entrypoints.process.tracing import tracing
from payagg.entrypoints.process.waiting import schema_awaited
from payagg.entrypoints.process.worker import run as run_worker
from payagg.entrypoints.settings import Settings

CHARGE_SECONDS = 25  # for charges whose payer may have gone: a provider takes 15 at most, recording its answer 8
# Whatever hangs, a process has ended so long after its SIGTERM, and what PAYAGG_SHUTDOWN_DELAY adds.
STOP_SECONDS = CHARGE_SECONDS + CLOSE_SECONDS + FLUSH_SECONDS
RESTART_SECONDS = 1.0
LOOK_SECONDS = 1.0
LOOKS_AT_MEMORY = 60  # each so many looks
STATM = Path("/proc/self/statm")  # Linux: sizes in pages, the second is what is resident
WORKER_NICENESS = 10  # the processes that answer go first: a payer waits for them, a webhook may come a moment later
_log = structlog.get_logger("payagg.server")


async def serve_http(
    services: Services,
    listener: socket.socket,
    stop: asyncio.Event,
    extra: Sequence[ControllerRouterHandler] = (),
    own_hosts: Collection[str] | None = None,
    draining: asyncio.Event | None = None,
) -> None:
    """Answers on `listener` until `stop`, then finishes what it accepted; the rest as create_app has it."""
    app = create_app(services, extra_routes=extra, own_hosts=own_hosts, draining=draining)
    server = http_server(app, services.entropy.hex)
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


async def keep_running(name: str, work: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
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
    """Everything one process does until SIGINT, SIGTERM or `stop`. On a schema that is too old it waits, not ready,
    until that is migrated. Raises Unavailable when the database is down."""
    raise_file_limit()
    draining = asyncio.Event()
    # A load balancer must see that a server is about to stop; of a worker nobody asks.
    delay = settings.shutdown_delay.total_seconds() if listener is not None else 0.0
    stop = stop_on_signals(stop, draining=draining, delay=delay)
    with tracing(settings):
        if not await schema_awaited(settings, database_url, listener, stop):
            return
        async with running(settings, database_url) as services, background(services, stop, with_worker=with_worker):
            settle_memory()
            ready()
            if listener is None:
                os.nice(WORKER_NICENESS)
                await stop.wait()
            else:
                _log.info("serving", address=list(listener.getsockname()[:2]))
                await warn_of_gaps(services)
                await serve_http(services, listener, stop, draining=draining)


async def warn_of_gaps(services: Services) -> None:
    """A provider sends the events of all merchants from a few addresses, and meets the limit per address. And what
    another slug's provider was to be asked about is asked about by nobody. A database that is away stops no server."""
    options, live = services.payment_options, list[str]()
    try:
        if not services.settings.provider_networks:
            live = await live_slugs(services.store, options.gateway_credentials)
        unbound = await unbound_slugs(services.store, options.providers)
    except Unavailable as error:
        _log.warning("not looked for gaps in the settings", reason=str(error))
        return
    if live:
        _log.warning(
            "PAYAGG_PROVIDER_NETWORKS is not set: past the limit per address LIVE events are refused", gateways=live
        )
    if unbound:
        _log.warning("no provider has the slug of open charges: nobody asks about them, see doctor", gateways=unbound)


async def watch_process(process: str) -> None:
    """Tells, for ever, how late this process's loop comes to what is due, as a callback that takes long holds up all;
    and how much memory it has."""
    clock = asyncio.get_running_loop().time
    for look in count():
        if look % LOOKS_AT_MEMORY == 0 and (size := resident_bytes()) is not None:
            observe_bytes("process_memory_bytes", size, process)
        due = clock() + LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        observe("loop_lag_seconds", max(0.0, clock() - due), process)


def resident_bytes() -> int | None:
    """None where the system does not tell."""
    try:
        return int(STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def settle_memory() -> None:
    """Takes what start-up made out of the collector's rounds. A full round over it stops every request for 50 ms;
    requests themselves make no cycles worth hurrying for. 1.35 times the initiations, p99 of reads 181 to 13 ms
    (2026-11-22, `make bench ARGS="--only ablation"` at 610f3a4)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@contextlib.asynccontextmanager
async def background(services: Services, stop: asyncio.Event, *, with_worker: bool) -> AsyncIterator[None]:
    """The worker beside the block, if wanted; leaving lets it finish or hand back what it holds. And a look at this
    process itself."""
    watching = asyncio.create_task(watch_process("with worker" if with_worker else "server"))
    working = None
    if with_worker:
        working = asyncio.create_task(keep_running("worker", lambda: run_worker(services, stop), stop))
    try:
        yield
    finally:
        stop.set()
        watching.cancel()
        if working is not None:
            await working


def stop_on_signals(
    stop: asyncio.Event | None = None, *, draining: asyncio.Event | None = None, delay: float = 0.0
) -> asyncio.Event:
    """An event that SIGINT of this process sets at once, and SIGTERM `delay` seconds after it has set `draining`; so
    does SIGHUP, of a terminal that is closed, unless `nohup` has this process ignore it."""
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()

    def drain() -> None:
        if draining is not None:
            draining.set()
        loop.call_later(delay, stop.set)

    loop.add_signal_handler(signal.SIGINT, stop.set)
    loop.add_signal_handler(signal.SIGTERM, drain)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, drain)
    return stop
