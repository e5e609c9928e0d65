"""Cells as an operator runs them, each with a Postgres of its own, and HAProxy before them with maps that are kept current."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lab.kit.processes import PATIENCE, PAYAGG, Processes, signalled, until
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.cell_world import NAMES, haproxy_text
from tests.support.machine import program
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready

ADDED = "PDX"
FRONT, MAPS = "haproxy", "maps"


@dataclass
class CellSite:
    """`ports`: of each cell's server and HAProxy's. `cells` are those in the list that all of them read."""

    processes: Processes
    ports: dict[str, int]
    cells: tuple[str, ...] = NAMES
    databases: dict[str, EmbeddedPostgres] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.processes.folder

    def origin(self, name: str = FRONT) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def environ(self, cell: str = "") -> dict[str, str]:
        """What every cell and the commands share, and what is the cell's own."""
        settings = SECRETS | {
            "PAYAGG_CELLS_FILE": str(self.folder / "cells"),
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
        """HAProxy, or a cell's Postgres and its servers with their worker; ready when this returns."""
        if name == FRONT:
            (file := self.folder / "haproxy.cfg").write_text(self.front_configuration())
            self.processes.start(name, [program("haproxy"), "-W", "-db", "-f", str(file)])
        else:
            port, self.databases[name] = str(self.ports[name]), EmbeddedPostgres(self.folder / name)
            self.databases[name].start()
            migrate(self.databases[name].url)
            self.processes.start(name, [*PAYAGG, "serve", "--workers", "2", "--port", port], self.environ(name))
        until(lambda: is_ready(self.ports[name]), f"{name} ready")

    def front_configuration(self) -> str:
        cells = {one: f"127.0.0.1:{self.ports[one]}" for one in self.cells}
        return haproxy_text(self.folder.absolute(), self.ports[FRONT], cells)

    def list_cells(self, *cells: str) -> None:
        self.cells = cells
        (self.folder / "cells").write_text(",".join(f"{name}={self.origin(name)}" for name in cells))

    def follow_maps(self) -> None:
        """Has a process keep the maps current."""
        self.processes.kill(MAPS)
        words = ("cell", "map", "--out", str(self.folder), "--haproxy", str(self.folder / "admin.sock"), "--follow")
        self.processes.start(MAPS, [*PAYAGG, *words], self.environ())

    def add(self) -> None:
        """A fourth cell, without a stop of what runs."""
        self.list_cells(*NAMES, ADDED)
        self.start(ADDED)
        supervisors = [psutil.Process(self.processes.running[name].pid) for name in NAMES]
        before = [process for one in supervisors for process in one.children()]
        for one in supervisors:
            one.send_signal(signal.SIGHUP)
        reading = "every process has read the list"
        until(lambda: not any(process.is_running() for process in before), reading, 3 * PATIENCE)
        until(lambda: self.command("cell", "list").returncode == 0, "every cell has the same gateways")
        (self.folder / "haproxy.cfg").write_text(self.front_configuration())
        self.processes.running[FRONT].send_signal(signal.SIGUSR2)
        self.follow_maps()

    def kill(self, name: str) -> None:
        """HAProxy, or a cell's servers at once, then its database."""
        signalled([self.processes.running[name].pid])
        self.processes.kill(name)
        if name in self.databases:
            self.databases.pop(name).stop()

    def command(self, *words: str, cell: str = "") -> "subprocess.CompletedProcess[str]":
        environ = self.environ(cell)
        return subprocess.run(
            [*PAYAGG, *words], check=False, capture_output=True, text=True, timeout=PATIENCE, env=environ
        )


@contextlib.contextmanager
def three_cells_running(folder: Path) -> Iterator[CellSite]:
    site = CellSite(Processes(folder), {name: free_port() for name in (*NAMES, ADDED, FRONT)})
    site.list_cells(*NAMES)
    try:
        with site.processes:
            for name in NAMES:
                site.start(name)
            written = site.command("cell", "map", "--out", str(folder))
            assert written.returncode == 0, written.stderr
            site.start(FRONT)
            site.follow_maps()
            yield site
    finally:
        for database in site.databases.values():
            database.stop()
