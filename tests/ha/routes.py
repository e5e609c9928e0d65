"""The ways to the primary: a URL with every host, HAProxy, and PgBouncer before it, as deploy/failover has them."""

import configparser
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from tests.ha.cluster import POSTGRES, Cluster
from tests.ha.machine import ROOT, UNPRIVILEGED, needed

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


def url(cluster: Cluster, route: DatabaseRoute, role: str = ROLE) -> str:
    told = ",".join(f"{address}:{port}" for address, port in hosts(cluster, route))
    return f"postgresql://{role}@{told}/{route.database}{'?target_session_attrs=read-write' * (',' in told)}"


def rendered_haproxy(text: str, cluster: Cluster) -> str:
    text, listeners = re.subn(r"bind \S+", f"bind {HAPROXY}:{HAPROXY_PORT}", text)
    text, servers = re.subn(
        r"(server db(\d)) \S+", lambda one: f"{one[1]} {cluster.addresses[int(one[2]) - 1]}:5432", text
    )
    assert (listeners, servers) == (1, len(cluster.nodes))
    return text.replace("    log /dev/log local0 notice\n", "")


def rendered_pgbouncer(text: str) -> str:
    config = configparser.ConfigParser()
    config.read_string(text)
    config["databases"] = {
        route.database: f"host={HAPROXY} port={HAPROXY_PORT} dbname={route.database}" for route in DatabaseRoute
    }
    config["pgbouncer"].update(
        {
            "listen_addr": PGBOUNCER,
            "listen_port": str(PGBOUNCER_PORT),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": "users",
        }
    )
    return "\n".join(
        f"[{name}]\n" + "\n".join(f"{key} = {value}" for key, value in config[name].items())
        for name in config.sections()
    )


@contextmanager
def proxies(cluster: Cluster, folder: Path) -> Iterator[None]:
    """HAProxy and PgBouncer, until the block is left."""
    haproxy, pgbouncer = folder / "haproxy.cfg", folder / "pgbouncer.ini"
    haproxy.write_text(rendered_haproxy((FILES / haproxy.name).read_text(), cluster))
    pgbouncer.write_text(rendered_pgbouncer((FILES / pgbouncer.name).read_text()))
    (folder / "users").write_text(f'"{ROLE}" ""\n"postgres" ""\n')
    commands = (
        [needed("haproxy"), "-db", "-f", str(haproxy)],
        [*UNPRIVILEGED, needed("pgbouncer"), str(pgbouncer)],
    )
    processes = []
    try:
        for number, command in enumerate(commands):
            with (folder / f"proxy{number}.log").open("ab") as log:
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
