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
def second_role(postgres: str, url: str) -> Iterator[str]:
    """`url` for a second role of the application's, made as for a new password (docs/operating/rotation.md)."""
    with admitted_by(postgres, "local all payagg_b trust") as connection:
        connection.execute("CREATE ROLE payagg_b LOGIN IN ROLE payagg")
        connection.execute("ALTER ROLE payagg_b SET role = payagg")
        try:
            yield url.replace("//payagg@", "//payagg_b@")
        finally:
            connection.execute("DROP ROLE payagg_b")
