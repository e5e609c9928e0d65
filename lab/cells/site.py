"""Three cells as an operator runs them, each with a Postgres of its own, and the router before them."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.kit.processes import PAYAGG, STOP_SECONDS, Processes, until
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready

NAMES = ("PAY", "PBX", "PCX")
ROUTER = "router"


@dataclass
class CellSite:
    """`ports`: of each cell's server and the router's."""

    processes: Processes
    ports: dict[str, int]
    databases: dict[str, EmbeddedPostgres] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.processes.folder

    def origin(self, name: str = ROUTER) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def environ(self, cell: str = "") -> dict[str, str]:
        """What every cell, the router and the commands share, and what is the cell's own."""
        settings = SECRETS | {
            "PAYAGG_CELLS": ",".join(f"{name}={self.origin(name)}" for name in NAMES),
            "PAYAGG_CELL_SECRET": "a-secret-between-the-cells-of-this-run",
            "PAYAGG_BASE_URL": self.origin(),
            "PAYAGG_TRUSTED_PROXIES": "127.0.0.0/8",
            "PAYAGG_PROVIDER_NETWORKS": "127.0.0.0/8",
            "PAYAGG_SHUTDOWN_DELAY": "0",
            "PAYAGG_POOL_SIZE": "5",
        }
        if cell:
            settings |= {
                "PAYAGG_REFERENCE_PREFIX": cell,
                "PAYAGG_DATABASE_URL": self.databases[cell].url,
                "PAYAGG_STATE_DIR": str(self.folder / cell),
            }
        return environment(**settings)

    def start(self, name: str) -> None:
        """The router, or a cell's Postgres and its server with its worker; ready when this returns."""
        if name != ROUTER:
            self.databases[name] = EmbeddedPostgres(self.folder / name)
            self.databases[name].start()
            migrate(self.databases[name].url)
        words = ("route", "") if name == ROUTER else ("serve", name)
        self.processes.start(name, [*PAYAGG, words[0], "--port", str(self.ports[name])], self.environ(words[1]))
        until(lambda: is_ready(self.ports[name]), f"{name} ready")

    def kill(self, cell: str) -> None:
        """Its server at once, then its database."""
        self.processes.kill(cell)
        self.databases.pop(cell).stop()

    def command(self, *words: str, cell: str = "") -> "subprocess.CompletedProcess[str]":
        environ = self.environ(cell)
        return subprocess.run(
            [*PAYAGG, *words], check=False, capture_output=True, text=True, timeout=STOP_SECONDS, env=environ
        )


@contextlib.contextmanager
def three_cells_running(folder: Path) -> Iterator[CellSite]:
    site = CellSite(Processes(folder), {name: free_port() for name in (*NAMES, ROUTER)})
    try:
        with site.processes:
            for name in (*NAMES, ROUTER):
                site.start(name)
            yield site
    finally:
        for database in site.databases.values():
            database.stop()
