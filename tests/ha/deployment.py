"""payagg as it runs behind one route: two servers and a worker, a provider, and a merchant who is told of payments."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg

from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.store import PostgresStore
from payagg.testing.fake_providers import FakePaystack
from tests.ha.cluster import POSTGRES, Cluster
from tests.ha.machine import until
from tests.ha.routes import ROLE, DatabaseRoute, url
from tests.support.assembly import services_over
from tests.support.http_world import Shop, an_api, sell_through_provider_a
from tests.support.processes import SECRETS, environment, is_ready, payagg
from tests.support.provider_rigs import credentials_a, fakes_running
from tests.support.receivers import Receiver, a_receiver

PORTS = {DatabaseRoute.MULTIHOST: 8100, DatabaseRoute.HAPROXY: 8200, DatabaseRoute.PGBOUNCER: 8300}
SERVERS = 2
POOL = 8
# Behind PgBouncer the role has them (docs/operating/postgres.md).
FOR_THE_ROLE = {
    "statement_timeout": "7s",
    "lock_timeout": "6s",
    "idle_in_transaction_session_timeout": "20s",
}


@dataclass
class ServedRoute:
    route: DatabaseRoute
    cluster: Cluster
    shop: Shop
    provider: FakePaystack
    merchant: Receiver
    clients: list[httpx.AsyncClient]  # of each server
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def settings(self, state: Path) -> dict[str, str]:
        behind = {"PAYAGG_PGBOUNCER": "true"} if self.route is DatabaseRoute.PGBOUNCER else {}
        return {"PAYAGG_STATE_DIR": str(state), "PAYAGG_POOL_SIZE": str(POOL), **behind}

    def start(self, state: Path) -> None:
        environ = environment(PAYAGG_SHUTDOWN_DELAY="0", **self.settings(state), **SECRETS)
        ports = range(PORTS[self.route], PORTS[self.route] + SERVERS)
        for role, port in (*(("api", port) for port in ports), ("worker", 0)):
            words = [
                sys.executable,
                "-m",
                "tests.support.loopback_process",
                role,
                str(port),
                url(self.cluster, self.route),
            ]
            with (state / f"{self.route.word}-{role}{port}.log").open("ab") as log:
                self.processes.append(subprocess.Popen(words, env=environ, stdout=log, stderr=log))
        until(lambda: all(is_ready(port) for port in ports), f"payagg ready behind {self.route.value}")

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def doctor(self) -> list[str]:
        """What it says, where that is not that all is well."""
        done = payagg("doctor", PAYAGG_DATABASE_URL=direct(self.cluster, self.route), **SECRETS)
        return [] if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()

    def query(self, statement: str) -> list[tuple[str, ...]]:
        """Of the primary itself, past the route."""
        with psycopg.connect(direct(self.cluster, self.route)) as connection:
            return connection.execute(statement.encode()).fetchall()


def direct(cluster: Cluster, route: DatabaseRoute, role: str = ROLE) -> str:
    """The database of a route at the primary of this moment."""
    return f"postgresql://{role}@{cluster.leader().address}:{POSTGRES}/{route.database}"


def make_databases(cluster: Cluster, routes: list[DatabaseRoute]) -> None:
    admin = f"postgresql://postgres@{cluster.leader().address}:{POSTGRES}/postgres"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN".encode())
        for route in routes:
            connection.execute(f"CREATE DATABASE {route.database} OWNER {ROLE}".encode())
            if route is DatabaseRoute.PGBOUNCER:
                for name, value in FOR_THE_ROLE.items():
                    words = f"ALTER ROLE {ROLE} IN DATABASE {route.database} SET {name} = '{value}'"
                    connection.execute(words.encode())
    for route in routes:
        migrate(direct(cluster, route))
        with psycopg.connect(direct(cluster, route)) as connection:
            connection.execute("CREATE TABLE probes (at timestamptz)")


@asynccontextmanager
async def a_deployment(cluster: Cluster, route: DatabaseRoute, state: Path) -> AsyncIterator[ServedRoute]:
    store = PostgresStore(direct(cluster, route), pool_size=2, pgbouncer=False)
    async with an_api(services_over(store)) as api:
        shop = await api.open_shop()
    await store.close()
    async with AsyncExitStack() as stack:
        fakes = await stack.enter_async_context(fakes_running())
        merchant = await stack.enter_async_context(a_receiver())
        clients = [await stack.enter_async_context(a_client(PORTS[route] + number)) for number in range(SERVERS)]
        fakes.paystack.book.webhook_urls = {"test": f"{clients[0].base_url}webhooks/provider_a/sandbox"}
        made = ServedRoute(route, cluster, shop, fakes.paystack, merchant, clients)
        stack.callback(made.stop)
        made.start(state)
        await sell_through_provider_a(clients[0], shop, credentials_a(fakes), merchant.origin)
        yield made


def a_client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}/api/v1/",
        trust_env=False,
        timeout=30,
        limits=httpx.Limits(max_connections=500, max_keepalive_connections=20),
    )
