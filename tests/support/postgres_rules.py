"""Who may connect to the Postgres of the tests, changed for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg


def superuser_url(postgres: str) -> str:
    return postgres.replace("//payagg@", "//postgres@")


@contextmanager
def admitted_by(postgres: str, rule: str) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's connection; `rule`, a line of pg_hba.conf, comes before the server's own."""
    (sockets,) = parse_qs(urlsplit(postgres).query)["host"]
    rules = Path(sockets).resolve().parent / "postgres.hba"
    before = rules.read_text()
    with psycopg.connect(superuser_url(postgres), autocommit=True) as connection:
        rules.write_text(f"{rule}\n{before}")
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield connection
        finally:
            rules.write_text(before)
            connection.execute("SELECT pg_reload_conf()")


@contextmanager
def more_roles(postgres: str, url: str, *, act_as_first: bool = True) -> Iterator[tuple[str, str]]:
    """`url` for two more roles of ours. `act_as_first`: as for a new password (docs/operating/rotation.md); else each
    acts by itself, as where servers and workers have passwords of their own."""
    names = ("payagg_b", "payagg_c")
    with admitted_by(postgres, f"local all {','.join(names)} trust") as connection:
        for name in names:
            connection.execute(f"CREATE ROLE {name} LOGIN IN ROLE payagg".encode())
            if act_as_first:
                connection.execute(f"ALTER ROLE {name} SET role = payagg".encode())
        try:
            one, other = (url.replace("//payagg@", f"//{name}@") for name in names)
            yield one, other
        finally:
            for name in names:
                connection.execute(f"DROP ROLE {name}".encode())
