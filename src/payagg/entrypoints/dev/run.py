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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations import is_current, migrate
from payagg.entrypoints.bootstrap import running
from payagg.entrypoints.dev.demo import DemoMaker
from payagg.entrypoints.dev.inbox import WebhookInbox, inbox_routes
from payagg.entrypoints.dev.providers import fake_providers
from payagg.entrypoints.dev.secrets import FOLDER, with_dev_secrets
from payagg.entrypoints.dev.tour import tour
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import background, listen, run, serve_http, stop_on_signals
from payagg.entrypoints.settings import Settings, SettingsError

HOST = "127.0.0.1"
KEPT = ("demo.json", "dev.json", "dev.log", "postgres.log", "postgres.socket")
KEPT_FOLDERS = (FOLDER, "logos", "run")


def dev(settings: Settings, *, port: int, fresh: bool, as_json: bool) -> None:
    """Until Ctrl-C or SIGTERM. Raises SettingsError, EmbeddedPostgresError or Unavailable, each one line."""
    with _only_one(settings.state_dir):
        listener = listen(HOST, port)
        if fresh:
            _forget(settings.state_dir)
        settings = with_dev_secrets(settings)
        if not os.environ.get("PAYAGG_BASE_URL"):
            settings = replace(settings, base_url=f"http://{HOST}:{port}")
        with _log(settings.state_dir) as log, _database(settings) as url:
            configure_logs(log)
            run(_serve(settings, url, listener, as_json=as_json))
            _tell("Stopping ...")
    _tell("Stopped; the data is kept.")


async def _serve(settings: Settings, url: str, listener: socket.socket, *, as_json: bool) -> None:
    stop = stop_on_signals()
    origin = f"http://{HOST}:{listener.getsockname()[1]}"
    async with fake_providers(settings, origin) as (pointed, credentials), running(pointed, url) as services:
        inbox = WebhookInbox(services.clock.now)
        serving = asyncio.create_task(serve_http(services, listener, stop, inbox_routes(inbox)))
        try:
            _tell("Making the demo data ...")
            maker = DemoMaker(services, origin, credentials)
            demo = await maker.make()
            inbox.secrets.append(demo.signing_secret)
            inbox.redeliver = partial(maker.redeliver, demo)
            async with background(services, stop, with_worker=True):
                _show(json.dumps(demo.shown) if as_json else tour(demo, state=settings.state_dir))
                await stop.wait()
        finally:
            stop.set()
            await serving


@contextlib.contextmanager
def _only_one(state_dir: Path) -> Iterator[None]:
    """Holds the state folder for this `dev`; the kernel lets go of it if we are killed."""
    try:
        state_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
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
    """Deletes what we made and nothing else: the folder may hold more than ours."""
    _tell("Forgetting the old demo ...")
    EmbeddedPostgres(state_dir).destroy()
    for name in KEPT:
        (state_dir / name).unlink(missing_ok=True)
    for name in KEPT_FOLDERS:
        if (state_dir / name).exists():
            shutil.rmtree(state_dir / name)


@contextlib.contextmanager
def _database(settings: Settings) -> Iterator[str]:
    """The database with this version's schema; somebody else's is migrated too, as `dev` is for trying things out."""
    if settings.database_url is not None:
        migrate(settings.database_url)
        yield settings.database_url
        return
    _tell("Starting Postgres ..." if (settings.state_dir / "postgres").exists() else "Making a Postgres database ...")
    with EmbeddedPostgres(settings.state_dir) as server:
        if not is_current(server.url):
            _tell("Bringing the schema up to date ...")
            migrate(server.url)
        yield server.url


@contextlib.contextmanager
def _log(state_dir: Path) -> Iterator[TextIO]:
    path = state_dir / "dev.log"
    with open(path, "w", buffering=1, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        yield file


def _show(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
