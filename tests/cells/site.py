"""Three cells as an operator runs them, each with a Postgres of its own, and the router before them."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready, wait_until

NAMES = ("PAY", "PBX", "PCX")
STOP_SECONDS = 60


@dataclass
class CellSite:
    folder: Path
    ports: dict[str, int]
    router_port: int
    databases: dict[str, EmbeddedPostgres] = field(default_factory=dict)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.router_port}"

    def origin_of(self, cell: str) -> str:
        return f"http://127.0.0.1:{self.ports[cell]}"

    @property
    def settings(self) -> dict[str, str]:
        """What every cell, the router and the commands share."""
        return SECRETS | {
            "PAYAGG_CELLS": ",".join(f"{name}={self.origin_of(name)}" for name in NAMES),
            "PAYAGG_CELL_SECRET": "a-secret-between-the-cells-of-this-run",
            "PAYAGG_BASE_URL": self.origin,
            "PAYAGG_TRUSTED_PROXIES": "127.0.0.0/8",
            "PAYAGG_SHUTDOWN_DELAY": "0",
            "PAYAGG_POOL_SIZE": "5",
        }

    def environ(self, cell: str | None = None) -> dict[str, str]:
        own = {}
        if cell is not None:
            own = {
                "PAYAGG_REFERENCE_PREFIX": cell,
                "PAYAGG_DATABASE_URL": self.databases[cell].url,
                "PAYAGG_STATE_DIR": str(self.folder / cell),
            }
        return environment(**self.settings, **own)

    def start(self, cell: str) -> None:
        """The cell's Postgres and its server with its worker, ready."""
        self.databases[cell] = EmbeddedPostgres(self.folder / cell)
        self.databases[cell].start()
        migrate(self.databases[cell].url)
        self._run(cell, self.environ(cell), "serve", "--port", str(self.ports[cell]))
        wait_until(lambda: is_ready(self.ports[cell]))

    def start_router(self) -> None:
        self._run("router", self.environ(), "route", "--port", str(self.router_port))
        wait_until(lambda: is_ready(self.router_port))

    def kill(self, cell: str) -> None:
        """Its server at once, then its database."""
        process = self.processes.pop(cell)
        process.kill()
        process.wait()
        self.databases.pop(cell).stop()

    def command(self, *words: str, cell: str | None = None) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "payagg", *words]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=STOP_SECONDS, env=self.environ(cell)
        )

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        until = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for database in self.databases.values():
            database.stop()

    def _run(self, name: str, environ: dict[str, str], *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "payagg", *words], env=environ, cwd=self.folder, stderr=log
            )


@contextlib.contextmanager
def three_cells_running(folder: Path) -> Iterator[CellSite]:
    site = CellSite(folder, {name: free_port() for name in NAMES}, free_port())
    try:
        for name in NAMES:
            site.start(name)
        site.start_router()
        yield site
    finally:
        site.stop()
