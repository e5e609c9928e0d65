"""One database with a cell in `public`, as the first one made it, and two more in schemas of their own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.machine import ROOT
from tests.support.postgres_rules import admitted_by, superuser_url

GUIDE = ROOT / "docs" / "cells.md"
ROLES = ("payagg", "pbx", "pcx")
_numbers = count(1)


def recipe() -> str:
    """The SQL of the guide."""
    [block] = re.findall(r"^```sql\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(block)


def url_of(postgres: str, role: str, database: str) -> str:
    return postgres.replace("//payagg@", f"//{role}@").replace("/payagg?", f"/{database}?")


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


class CellDatabases:
    """Databases with a schema for each of ROLES: `pbx` is made as the guide says, and `pcx` without its last line, so
    that Postgres' own search path, `"$user", public`, has the first cell's tables behind its own."""

    def __init__(self, postgres: str) -> None:
        self.postgres = postgres
        self.template = f"cells_{next(_numbers)}"
        self._superuser = superuser_url(postgres)
        execute(postgres, f"CREATE DATABASE {self.template}")
        own = superuser_url(postgres).replace("/payagg?", f"/{self.template}?")
        made = recipe().replace("ON DATABASE payagg ", f"ON DATABASE {self.template} ")
        execute(own, f"REVOKE ALL ON DATABASE {self.template} FROM PUBLIC")
        execute(own, *made.split(";\n"))
        execute(own, *made.replace("pbx", "pcx").partition("ALTER ROLE")[0].split(";\n"))
        for role in ROLES:
            migrate(url_of(postgres, role, self.template))

    @contextmanager
    def fresh(self) -> "Iterator[dict[str, str]]":
        """The URL of each role, in a database of the test's own."""
        name = f"{self.template}_{next(_numbers)}"
        execute(
            self._superuser,
            f"CREATE DATABASE {name} TEMPLATE {self.template} OWNER payagg STRATEGY FILE_COPY",
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
            f"GRANT CONNECT, TEMPORARY ON DATABASE {name} TO pbx, pcx",
        )
        yield {role: url_of(self.postgres, role, name) for role in (*ROLES, "postgres")}
        execute(self._superuser, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def cell_databases(postgres: str) -> "Iterator[CellDatabases]":
    with admitted_by(postgres, "local all pbx,pcx trust"):
        made = CellDatabases(postgres)
        try:
            yield made
        finally:
            execute(superuser_url(postgres), f"DROP DATABASE {made.template} WITH (FORCE)", "DROP ROLE pbx, pcx")


def rows(url: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(sql.SQL(query), values).fetchall()
