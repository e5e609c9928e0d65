"""A real PgBouncer in transaction mode before a database of a test."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.support.machine import ROOT, program
from tests.support.ports import free_port
from tests.support.postgres_world import by_proxy
from tests.support.receivers import until

OPERATING = ROOT / "docs" / "operating" / "postgres.md"


def give_settings(connection: psycopg.Connection[Any], database: str) -> None:
    """The role has in `database` what an operator gives it behind PgBouncer."""
    for words in re.findall(r"^ALTER ROLE payagg (SET .+);$", OPERATING.read_text(), re.MULTILINE):
        connection.execute(f"ALTER ROLE payagg IN DATABASE {database} {words}".encode())


@asynccontextmanager
async def a_pgbouncer(database_url: str, folder: Path, connections: int) -> AsyncIterator[str]:
    """The URL of that database through a PgBouncer that holds at most so many connections to it."""
    binary = program("pgbouncer")
    name = urlsplit(database_url).path.lstrip("/")
    # PgBouncer gives up root, and the server's socket lies in a folder that only its own account may enter.
    async with by_proxy(database_url) as (proxy, _):
        port = free_port()
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": connections,
            "max_client_conn": 500,
            "server_login_retry": 1,
            **({"user": "nobody"} if os.geteuid() == 0 else {}),
        }
        target = f"{name} = host=127.0.0.1 port={proxy.port} user=payagg"
        lines = ["[databases]", target, "[pgbouncer]", *(f"{key} = {value}" for key, value in settings.items())]
        file = folder / "pgbouncer.ini"
        file.write_text("\n".join(lines))
        with (folder / "pgbouncer.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(binary, str(file), stdout=log, stderr=log)
        try:
            await until(lambda: _listens(port))
            yield f"postgresql://payagg@127.0.0.1:{port}/{name}?sslmode=disable"
        finally:
            process.terminate()
            await process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
