"""payagg at work: a database of its own, one server process, a worker when wanted."""

import tempfile
import time
from base64 import b64decode
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import httpx
import psutil
import psycopg

from benchmarks import seed
from benchmarks.client import API
from benchmarks.harness import process
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.security import AesVault, Tokens
from payagg.domain.webhook import secret_context
from tests.support.ports import free_port

SECRETS = {
    "PAYAGG_JWT_KEY": "a key of the benchmarks with 32 bytes or more",
    "PAYAGG_JWT_ALGORITHM": "HS256",
    "PAYAGG_ENCRYPTION_KEYS": "bench:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=",
}
PROVIDER = "provider_a"
PROVIDER_KEY = "sk_test_bench"
# What a deployment behind a proxy sets: each payer has an address of his own, and so few providers send so much that
# their limit is raised.
SETTINGS = {"PAYAGG_TRUSTED_PROXIES": "127.0.0.0/8", "PAYAGG_WEBHOOK_RATE_LIMIT": "100000000"}


class Deployment:
    """A new database of the Postgres at `server`, migrated and loaded with the benchmark's businesses."""

    def __init__(self, stack: ExitStack, name: str, server: str) -> None:
        self.url = server.replace("/payagg?", f"/{name}?")
        state = stack.enter_context(tempfile.TemporaryDirectory())
        self.environment = SECRETS | SETTINGS | {"PAYAGG_DATABASE_URL": self.url, "PAYAGG_STATE_DIR": state}
        self.port = 0
        self._stack = stack
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        migrate(self.url)
        seed.businesses(self.url)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> psutil.Process:
        """The server at `address`, ready."""
        self.port = free_port()
        return self._stack.enter_context(self.server(self.port))

    def server(self, port: int) -> AbstractContextManager[psutil.Process]:
        arguments = ["-m", "payagg", "serve", "--no-worker", "--port", str(port)]
        return process(arguments, self.environment, f"http://127.0.0.1:{port}/readyz")

    def worker(self) -> AbstractContextManager[psutil.Process]:
        """Allowed to reach a receiver on loopback, as `dev` is."""
        return process(["-m", "tests.support.loopback_process", "worker", "0", self.url], self.environment, None)

    def token(self, **claims: Any) -> str:
        tokens = Tokens(SECRETS["PAYAGG_JWT_KEY"], SECRETS["PAYAGG_JWT_ALGORITHM"])
        return tokens.issue({"sub": "bench", **claims}, 86_400, int(time.time()))

    def configure_provider(self) -> None:
        """Gives provider_a its sandbox key and enables it, as an administrator does."""
        token, place = self.token(type="admin", role="SUPER_ADMIN"), f"admin/gateways/gw_{PROVIDER}"
        self.call("PATCH", f"{place}/credentials", token, json={"credentials": {"sandboxSecretKey": PROVIDER_KEY}})
        self.call("POST", f"{place}/enable", token)

    def call(self, method: str, path: str, token: str = "", **more: Any) -> Any:
        """The answer's data; it must be good."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = httpx.request(method, f"{self.address}{API}/{path}", headers=headers, trust_env=False, **more)
        return answer.raise_for_status().json().get("data")

    def endpoints(self, target: str) -> None:
        """One owner and one endpoint for each business, told at `target` how a payment ends."""
        kid, _, key = SECRETS["PAYAGG_ENCRYPTION_KEYS"].partition(":")
        vault = AesVault(((kid, b64decode(key)),))
        seed.endpoints(self.url)
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE webhook_endpoints SET url = %s, secret = %s, events = %s WHERE id = %s",
                [
                    (target, vault.seal(b"k" * 32, secret_context(id)), ["payment.success", "payment.failed"], id)
                    for id in (f"whe_bench_{n}" for n in range(1, seed.BUSINESSES + 1))
                ],
            )

    def quiet(self) -> None:
        """Leaves nothing for a worker to ask or to send."""
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "UPDATE attempts SET next_ask_at = now() + interval '1 day' WHERE next_ask_at IS NOT NULL"
            )
            connection.execute(
                "UPDATE deliveries SET status = 'DELIVERED', next_attempt_at = NULL WHERE status = 'PENDING'"
            )
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
