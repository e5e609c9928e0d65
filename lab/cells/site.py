"""Three cells as an operator runs them, each with a Postgres of its own, and HAProxy before them."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.kit.processes import PAYAGG, STOP_SECONDS, Processes, until
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.machine import ROOT, program
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready

NAMES = ("PAY", "PBX", "PCX")
FRONT = "haproxy"


@dataclass
class CellSite:
    """`ports`: of each cell's server and HAProxy's."""

    processes: Processes
    ports: dict[str, int]
    databases: dict[str, EmbeddedPostgres] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.processes.folder

    def origin(self, name: str = FRONT) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def environ(self, cell: str = "") -> dict[str, str]:
        """What every cell and the commands share, and what is the cell's own."""
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
        """HAProxy, or a cell's Postgres and its server with its worker; ready when this returns."""
        if name == FRONT:
            (file := self.folder / "haproxy.cfg").write_text(self.front_configuration())
            written = self.command("cell", "map", "--out", str(self.folder))
            assert written.returncode == 0, written.stderr
            self.processes.start(name, [program("haproxy"), "-db", "-f", str(file)])
        else:
            self.databases[name] = EmbeddedPostgres(self.folder / name)
            self.databases[name].start()
            migrate(self.databases[name].url)
            self.processes.start(name, [*PAYAGG, "serve", "--port", str(self.ports[name])], self.environ(name))
        until(lambda: is_ready(self.ports[name]), f"{name} ready")

    def front_configuration(self) -> str:
        """Of docs/cells.md, behind what deploy/haproxy.cfg begins with."""
        head = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8").partition("\nfrontend ")[0]
        guide = (ROOT / "docs" / "cells.md").read_text(encoding="utf-8")
        [shown] = re.findall(r"```text\n(frontend payagg\n.*?)```", guide, re.DOTALL)
        shown = shown.replace("bind :8000", f"bind 127.0.0.1:{self.ports[FRONT]}").replace(" check\n", "\n")
        shown = shown.replace("/var/lib/payagg-maps/", f"{self.folder.absolute()}/")
        for name in NAMES:
            shown = re.sub(rf"(server {name}) \S+", rf"\1 127.0.0.1:{self.ports[name]}", shown)
        return f"{head}\n{shown}"

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
    site = CellSite(Processes(folder), {name: free_port() for name in (*NAMES, FRONT)})
    try:
        with site.processes:
            for name in (*NAMES, FRONT):
                site.start(name)
            yield site
    finally:
        for database in site.databases.values():
            database.stop()
