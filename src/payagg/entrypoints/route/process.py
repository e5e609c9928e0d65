"""`payagg route` as one process, or as several on one socket."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory

import structlog

from payagg.entrypoints.bootstrap import entropy_of
from payagg.entrypoints.process.http_server import connections_max, http_server
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import run, stop_on_signals
from payagg.entrypoints.process.supervisor import handed_down, keep_processes, tell_ready
from payagg.entrypoints.route.app import RouterApp
from payagg.entrypoints.route.metrics import FOLDER_VARIABLE, LOG_LINES_DROPPED
from payagg.entrypoints.route.upstream import Upstream
from payagg.entrypoints.settings import Settings, SettingsError, read_settings

_log = structlog.get_logger("payagg.route")


def ensure_cells(settings: Settings) -> None:
    """Raises SettingsError without cells."""
    if not settings.cells or settings.cell_secret is None:
        raise SettingsError("PAYAGG_CELLS is required: which cells there are, for example PAY=http://10.0.0.1:8000.")


def upstreams(settings: Settings) -> dict[str, Upstream]:
    """Raises SettingsError without cells."""
    ensure_cells(settings)
    assert settings.cell_secret is not None
    return {name: Upstream.to(name, origin, settings.cell_secret) for name, origin in settings.cells}


async def route(
    settings: Settings,
    listener: socket.socket,
    stop: asyncio.Event | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answers on `listener` until SIGINT, SIGTERM or `stop`, then finishes what it accepted."""
    cells = upstreams(settings)
    new_id = entropy_of(settings).hex
    app = RouterApp(settings, cells, new_id)
    delay = settings.shutdown_delay.total_seconds()
    stop = stop_on_signals(stop, draining=app.draining, delay=delay)
    server = http_server(app, new_id)
    state = server.server_state
    state.most = connections_max()
    state.per_address, state.proxies = max(state.most // 4, 100), settings.trusted_proxies
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    _log.info("routing", address=list(listener.getsockname()[:2]), cells=dict(settings.cells))
    ready()
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        for cell in cells.values():
            await cell.close()


async def supervise_routers(
    settings: Settings, listener: socket.socket, workers: int, environ: Mapping[str, str]
) -> None:
    """`workers` equal processes, kept as those of `serve` are; `environ` is theirs."""
    draining = asyncio.Event()
    stop = stop_on_signals(draining=draining, delay=settings.shutdown_delay.total_seconds())
    with TemporaryDirectory(prefix="payagg-route-") as counted:
        own = {**environ, FOLDER_VARIABLE: counted}
        await keep_processes(__name__, ["router"] * workers, listener, own, stop, draining)


async def _child(descriptor: int) -> None:
    listener, stop = handed_down(descriptor)
    await route(read_settings(os.environ), listener, stop, tell_ready)


if __name__ == "__main__":
    configure_logs(count_dropped=LOG_LINES_DROPPED.inc)
    run(_child(int(sys.argv[2])))
