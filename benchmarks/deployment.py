"""payagg at work: a database of its own, one server process, a worker and a merchant when wanted."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import psutil
import psycopg

from benchmarks import seed
from lab.kit.places import a_folder
from lab.kit.processes import PAYAGG, Processes, until
from lab.kit.site import LOOPBACK
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.security import AesVault
from payagg.domain.webhook import secret_context
from tests.support.assembly import KEYS
from tests.support.http_world import admin_token, bearer
from tests.support.machine import ROOT
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready

PROVIDER = "provider_a"
PROVIDER_KEY = "sk_test_bench"
# What a deployment behind a proxy sets: each payer has an address of his own, and the provider's networks are named.
SETTINGS = {"PAYAGG_TRUSTED_PROXIES": "127.0.0.0/8", "PAYAGG_PROVIDER_NETWORKS": "52.31.139.75/32"}


@contextmanager
def postgres() -> Iterator[str]:
    """A fresh embedded Postgres with its default durability; removed afterwards."""
    with a_folder("bench") as folder, EmbeddedPostgres(folder / "state") as server:
        # More than the application may: benchmarks make databases and fill them past the triggers.
        with psycopg.connect(server.superuser_url, autocommit=True) as connection:
            connection.execute("ALTER ROLE payagg CREATEDB")
            connection.execute("GRANT pg_checkpoint TO payagg")
            connection.execute("GRANT SET ON PARAMETER session_replication_role TO payagg")
        yield server.url


class Deployment:
    """A new database of the Postgres at `server`, migrated and loaded with the benchmark's businesses. The access logs
    of its processes are written, as in production."""

    def __init__(self, stack: ExitStack, name: str, server: str) -> None:
        self.url = server.replace("/payagg?", f"/{name}?")
        folder = stack.enter_context(a_folder("bench"))
        own = {"PAYAGG_DATABASE_URL": self.url, "PAYAGG_STATE_DIR": str(folder)}
        self.environment = environment(**SECRETS, **SETTINGS, **own)
        self.port = self._receiver = free_port()
        self.processes = stack.enter_context(Processes(folder))
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        migrate(self.url)
        seed.businesses(self.url)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> psutil.Process:
        """The server at `address`, ready."""
        return self.start("server", *PAYAGG, "serve", "--no-worker", "--port", str(self.port), port=self.port)

    def bare(self, port: int) -> psutil.Process:
        """`benchmarks.bare` over the same database, ready."""
        return self.start("bare", sys.executable, "-m", "benchmarks.bare", str(port), port=port)

    def worker(self) -> psutil.Process:
        """Allowed to reach a receiver on loopback, as `dev` is."""
        return self.start("worker", *LOOPBACK, "worker", "0", self.url)

    def start(self, name: str, *command: str, port: int | None = None) -> psutil.Process:
        """Ready where it has a port."""
        self.processes.start(name, command, self.environment, cwd=ROOT)
        if port is not None:
            until(lambda: is_ready(port), f"{name} ready")
        return psutil.Process(self.processes.running[name].pid)

    def receive(self) -> None:
        """Starts a merchant who counts, with one owner and one endpoint for each business."""
        self._receiver = free_port()
        self.start("receiver", sys.executable, "-m", "benchmarks.receiver", str(self._receiver), port=self._receiver)
        vault = AesVault(KEYS)
        seed.endpoints(self.url)
        events, target = ["payment.success", "payment.failed"], f"http://127.0.0.1:{self._receiver}/hook"
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE webhook_endpoints SET url = %s, secret = %s, events = %s WHERE id = %s",
                [
                    (target, vault.seal(b"k" * 32, secret_context(id)), events, id)
                    for id in (f"whe_bench_{n}" for n in range(1, seed.BUSINESSES + 1))
                ],
            )

    def received(self) -> int:
        """How many deliveries the merchant has."""
        return int(httpx.get(f"http://127.0.0.1:{self._receiver}/count", trust_env=False).text)

    def wait_for(self, number: int) -> None:
        until(lambda: self.received() >= number, f"{number} deliveries")

    def configure_provider(self) -> None:
        """Gives provider_a its sandbox key and enables it, as an administrator does."""
        headers, place = bearer(admin_token("SUPER_ADMIN")), f"admin/gateways/gw_{PROVIDER}"
        credentials = {"credentials": {"sandboxSecretKey": PROVIDER_KEY}}
        self.call("PATCH", f"{place}/credentials", headers=headers, json=credentials)
        self.call("POST", f"{place}/enable", headers=headers)

    def call(self, method: str, path: str, **more: Any) -> Any:
        """The answer's data; it must be good."""
        answer = httpx.request(method, f"{self.address}/api/v1/{path}", trust_env=False, **more)
        return answer.raise_for_status().json().get("data")
