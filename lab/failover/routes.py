"""The ways to the primary: a URL with every host, HAProxy, and PgBouncer before it, as deploy/failover has them."""

import configparser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import psycopg

from lab.failover.cluster import POSTGRES, UNPRIVILEGED, Cluster
from lab.kit.processes import Processes, with_addresses
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.machine import ROOT, program
from tests.support.pgbouncer import give_settings

FILES = ROOT / "deploy" / "failover"
HAPROXY, HAPROXY_PORT = "127.0.0.31", 5000
PGBOUNCER, PGBOUNCER_PORT = "127.0.0.32", 6432
ROLE = "payagg"


class DatabaseRoute(Enum):
    """`value` is how the table calls it."""

    MULTIHOST = "multi-host URL"
    HAPROXY = "HAProxy"
    PGBOUNCER = "PgBouncer before HAProxy"

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def database(self) -> str:
        """Each route has one, so that each can be judged alone while all meet the same fault."""
        return f"through_{self.word}"


def hosts(cluster: Cluster, route: DatabaseRoute) -> list[tuple[str, int]]:
    """Where somebody who takes this route connects to."""
    if route is DatabaseRoute.MULTIHOST:
        return [(address, POSTGRES) for address in cluster.addresses]
    return [(HAPROXY, HAPROXY_PORT) if route is DatabaseRoute.HAPROXY else (PGBOUNCER, PGBOUNCER_PORT)]


def url(cluster: Cluster, route: DatabaseRoute) -> str:
    told = ",".join(f"{address}:{port}" for address, port in hosts(cluster, route))
    return f"postgresql://{ROLE}@{told}/{route.database}{'?target_session_attrs=read-write' * (',' in told)}"


@contextmanager
def proxies(cluster: Cluster, folder: Path) -> Iterator[None]:
    """HAProxy and PgBouncer, until the block is left."""
    haproxy, pgbouncer = folder / "haproxy.cfg", folder / "pgbouncer.ini"
    servers = [f"{one}:{POSTGRES}" for one in cluster.addresses]
    text = with_addresses((FILES / haproxy.name).read_text(), f"{HAPROXY}:{HAPROXY_PORT}", servers)
    haproxy.write_text(text.replace("    log /dev/log local0 notice\n", ""))
    config = configparser.ConfigParser()
    config.read(FILES / pgbouncer.name)
    place = f"host={HAPROXY} port={HAPROXY_PORT} dbname="
    config["databases"] = {route.database: place + route.database for route in DatabaseRoute}
    own = {"listen_addr": PGBOUNCER, "listen_port": str(PGBOUNCER_PORT), "unix_socket_dir": ""}
    config["pgbouncer"].update(own, auth_type="trust", auth_file="users")
    with pgbouncer.open("w") as file:
        config.write(file)
    (folder / "users").write_text(f'"{ROLE}" ""\n"postgres" ""\n')
    with Processes(folder) as processes:
        processes.start("haproxy", [program("haproxy"), "-db", "-f", str(haproxy)])
        processes.start("pgbouncer", [*UNPRIVILEGED, program("pgbouncer"), str(pgbouncer)])
        yield


def direct(cluster: Cluster, route: DatabaseRoute) -> str:
    """The database of a route at the primary of this moment."""
    return f"postgresql://{ROLE}@{cluster.leader().address}:{POSTGRES}/{route.database}"


def make_databases(cluster: Cluster, routes: Sequence[DatabaseRoute]) -> None:
    admin = f"postgresql://postgres@{cluster.leader().address}:{POSTGRES}/postgres"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN".encode())
        for route in routes:
            connection.execute(f"CREATE DATABASE {route.database} OWNER {ROLE}".encode())
            if route is DatabaseRoute.PGBOUNCER:
                give_settings(connection, route.database)
    for route in routes:
        migrate(direct(cluster, route))
        with psycopg.connect(direct(cluster, route)) as connection:
            connection.execute("CREATE TABLE probes (at timestamptz)")
