"""One checkout of payagg at work: a database of its own, one server process, a worker when wanted.

Two checkouts are compared by what they share: the command line, the settings, HTTP, the tables that are filled here,
and the ports that `benchmarks.sweeps` calls. Each runs its own code in its own folder.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from base64 import b64decode
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks import seed
from benchmarks.client import API
from benchmarks.harness import HERE, process
from payagg.adapters.security import AesVault, Tokens
from payagg.domain.webhook import secret_context
from tests.support.ports import free_port

OWN = HERE.parent
PROVIDER = "provider_a"
PROVIDER_KEY = "sk_test_bench"
# What a deployment behind a proxy sets: each payer has an address of his own, and so few providers send so much that
# their limit is raised.
SETTINGS = {"PAYAGG_TRUSTED_PROXIES": "127.0.0.0/8", "PAYAGG_WEBHOOK_RATE_LIMIT": "100000000"}


class Deployment:
    """The code in `root` on a new database of the Postgres at `server`, loaded with the benchmark's businesses."""

    def __init__(self, stack: ExitStack, name: str, root: Path, server: str, secrets: dict[str, str]) -> None:
        self.name, self.root, self._secrets = name, root, secrets
        self.url = server.replace("/payagg?", f"/{name}?")
        state = stack.enter_context(tempfile.TemporaryDirectory())
        self.environment = secrets | SETTINGS | {"PAYAGG_DATABASE_URL": self.url, "PAYAGG_STATE_DIR": state}
        self.port = 0
        self._stack = stack
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        command = [self._python, "-m", "payagg", "migrate"]
        subprocess.run(command, check=True, cwd=root, env=os.environ | self._in("payagg"), stdout=subprocess.DEVNULL)
        seed.businesses(self.url)

    def serve(self, *command: str) -> psutil.Process:
        """The server, ready: `payagg serve --no-worker`, or another module and its arguments before the port's."""
        self.port = free_port()
        arguments = ["-m", *(command or ("payagg", "serve", "--no-worker")), "--port", str(self.port)]
        ready = f"http://127.0.0.1:{self.port}/readyz"
        module = (command or ("payagg",))[0]
        started = process(arguments, self._in(module), ready, python=self._python, folder=self._folder(module))
        return self._stack.enter_context(started)

    def worker(self) -> AbstractContextManager[psutil.Process]:
        module = "benchmarks.worker"
        return process(["-m", module], self._in(module), None, python=self._python, folder=self._folder(module))

    def sweep(self, numbers: dict[str, int]) -> dict[str, dict[str, float]]:
        """What an item costs in each sweep of `benchmarks.sweeps`, run by this checkout's code until so many are done."""
        module = "benchmarks.sweeps"
        told = subprocess.run(
            [self._python, "-m", module, *(str(part) for pair in numbers.items() for part in pair)],
            check=True,
            cwd=self._folder(module),
            env=os.environ | self._in(module),
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        costs: dict[str, dict[str, float]] = json.loads(told.splitlines()[-1])
        return costs

    def token(self, **claims: Any) -> str:
        tokens = Tokens(self._secrets["PAYAGG_JWT_KEY"], self._secrets["PAYAGG_JWT_ALGORITHM"])
        return tokens.issue({"sub": "bench", **claims}, 86_400, int(time.time()))

    def configure_provider(self, **credentials: str) -> None:
        """Gives provider_a its sandbox key and `credentials` beside it, and enables it, as an administrator does."""
        self._change("PATCH", "credentials", {"credentials": {"sandboxSecretKey": PROVIDER_KEY, **credentials}})
        self._change("POST", "enable", {})

    def _change(self, method: str, path: str, body: dict[str, Any]) -> None:
        token = self.token(type="admin", role="SUPER_ADMIN")
        wish = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{API}/admin/gateways/gw_{PROVIDER}/{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        urllib.request.urlopen(wish, timeout=10).close()

    def endpoints(self, target: str) -> None:
        """One owner and one endpoint for each business, told at `target` how a payment ends."""
        kid, _, key = self._secrets["PAYAGG_ENCRYPTION_KEYS"].partition(":")
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

    @property
    def _python(self) -> str:
        own = self.root / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    def _folder(self, module: str) -> Path:
        """Where to run a module: in the checkout where it is there, else with our copy of the benchmark on its code."""
        return self.root if (self.root / f"{module.replace('.', '/')}.py").exists() or module == "payagg" else OWN

    def _in(self, module: str) -> dict[str, str]:
        paths = (self.root / "src", self._folder(module))
        return self.environment | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
