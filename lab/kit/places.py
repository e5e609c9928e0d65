"""Where a part runs: a folder that is gone at the end, a Postgres in it, and an empty database for each try."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.system import SystemClock

TEMPLATE = "template_of_the_lab"


def long_ago() -> datetime:
    """Where the clock of a scene begins: it moves on, and the doctor reads the database's."""
    return SystemClock().now() - timedelta(hours=12)


@contextmanager
def a_folder(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"payagg-{name}-") as folder:
        # The embedded Postgres of a root user runs as another one, who must reach its folder.
        os.chmod(folder, 0o711)
        yield Path(folder)


@contextmanager
def a_postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    """With the schema; its state is `folder` / state."""
    with EmbeddedPostgres(folder / "state") as server:
        migrate(server.url)
        yield server


class Databases:
    """A server that may be killed, and an empty database and folder of its own for each try."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server, self.folder, self.made = server, folder, 0
        self._execute(f"CREATE DATABASE {TEMPLATE} OWNER payagg")
        migrate(self._at(TEMPLATE))

    @contextmanager
    def fresh(self) -> Iterator[tuple[str, Path]]:
        """Its URL and folder. It is dropped again: a server that was killed looks through every file that it has."""
        self.made += 1
        name = f"try_{self.made}"
        folder = self.folder / name
        folder.mkdir()
        self._execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER payagg")
        yield self._at(name), folder
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.server.superuser_url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _at(self, name: str) -> str:
        head, _, query = self.server.url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}?{query}"


@contextmanager
def databases(name: str) -> Iterator[Databases]:
    with a_folder(name) as folder, EmbeddedPostgres(folder / "state") as server:
        yield Databases(server, folder)
