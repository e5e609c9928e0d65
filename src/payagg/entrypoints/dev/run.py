"""`payagg dev`: database, demo data, API, worker, hosted page, fake providers and webhook inbox in one process."""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

import uvloop

from payagg.application.ports.outside import Entropy
from payagg.entrypoints.bootstrap import entropy_of, running
from payagg.entrypoints.cli.database import database, destroy
from payagg.entrypoints.dev.demo import DemoMaker, tour
from payagg.entrypoints.dev.inbox import WebhookViewer, inbox_routes
from payagg.entrypoints.dev.providers import fake_providers
from payagg.entrypoints.dev.secrets import FOLDER, with_dev_secrets
from payagg.entrypoints.extensions import DevPages, parts
from payagg.entrypoints.process.http_server import listen, with_own_address
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import background, serve_http, stop_on_signals
from payagg.entrypoints.process.tracing import tracing
from payagg.entrypoints.settings import Settings, SettingsError

HOST = "127.0.0.1"
KEPT = ("demo.json", "dev.json", "dev.log", "postgres.hba", "postgres.ident", "postgres.log", "postgres.socket")
KEPT_FOLDERS = (FOLDER, "logos", "run")


def dev(settings: Settings, *, port: int, fresh: bool, as_json: bool) -> None:
    """Until Ctrl-C or SIGTERM. Raises SettingsError, EmbeddedPostgresError or Unavailable, each one line."""
    entropy = entropy_of(settings)
    with _only_one(settings.state_dir):
        listener = listen(HOST, port)
        if fresh:
            _forget(settings.state_dir)
        settings = with_own_address(with_dev_secrets(settings, entropy), os.environ, HOST, port)
        # A given database is migrated too, as `dev` is for trying things out.
        with _log(settings.state_dir) as log, database(settings, migrating=True, tell=_tell) as url:
            configure_logs(log)
            with tracing(settings):
                uvloop.run(_serve(settings, url, listener, entropy, as_json=as_json))
            _tell("Stopping ...")
    _tell("Stopped; the data is kept.")


async def _serve(settings: Settings, url: str, listener: socket.socket, entropy: Entropy, *, as_json: bool) -> None:
    stop = stop_on_signals()
    origin = f"http://{HOST}:{listener.getsockname()[1]}"
    async with fake_providers(settings, origin, entropy) as (pointed, credentials), running(pointed, url) as services:
        inbox = WebhookViewer(services.clock.now)
        own_hosts = [urlsplit(settings.base_url).hostname or HOST]
        maker = DemoMaker(services, origin, credentials)
        pages: list[DevPages] = [make(services, maker.tokens) for make in parts(settings.extensions, "dev_pages")]
        routes = [*inbox_routes(inbox), *(route for page in pages for route in page.routes)]
        serving = asyncio.create_task(serve_http(services, listener, stop, routes, own_hosts))
        try:
            _tell("Making the demo data ...")
            demo = await maker.make({name: url for page in pages for name, url in page.links.items()})
            inbox.secrets.append(demo.signing_secret)
            async with background(services, stop, with_worker=True):
                _show(json.dumps(demo.shown) if as_json else tour(demo, state=settings.state_dir))
                await stop.wait()
        finally:
            stop.set()
            await serving


@contextlib.contextmanager
def _only_one(state_dir: Path) -> Iterator[None]:
    """Locks the state folder for this `dev`; the kernel releases the lock if the process is killed."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(state_dir / "dev.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(
            f"{state_dir} cannot be used ({error.strerror}): run as its owner or choose another PAYAGG_STATE_DIR."
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise SettingsError(f"Another `payagg dev` already runs on {state_dir}.") from None
    finally:
        os.close(descriptor)


def _forget(state_dir: Path) -> None:
    """Deletes only what `dev` made: the folder may hold other files."""
    _tell("Forgetting the old demo ...")
    destroy(state_dir)
    for name in KEPT:
        (state_dir / name).unlink(missing_ok=True)
    for name in KEPT_FOLDERS:
        if (state_dir / name).exists():
            shutil.rmtree(state_dir / name)


@contextlib.contextmanager
def _log(state_dir: Path) -> Iterator[TextIO]:
    path = state_dir / "dev.log"
    with open(path, "w", buffering=1, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        yield file


def _show(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
