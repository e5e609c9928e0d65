"""The product to be killed: its processes and its embedded Postgres; all of them start again."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.store import PostgresStore
from payagg.testing.fake_providers import FakePaystack
from tests.soak.recorder import SoakRecorder
from tests.support.assembly import services_over
from tests.support.http_world import Shop, an_api, sell_through_provider_a
from tests.support.pgbouncer import a_pgbouncer
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready, wait_until
from tests.support.provider_rigs import credentials_a, fakes_running
from tests.support.receivers import a_receiver

SETTINGS = SECRETS | {"PAYAGG_SHUTDOWN_DELAY": "0", "PAYAGG_POOL_SIZE": "5"}
PATIENCE = 30.0  # seconds for one answer
SERVER_CONNECTIONS = 20  # that a PgBouncer makes of those of all processes
ONE = ("both",)


class AnyOfThem(httpx.AsyncHTTPTransport):
    """Sends each request to one of several servers on loopback, by chance, as a balancer does."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__()
        self._ports = ports

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=random.choice(self._ports))
        return await super().handle_async_request(request)


@dataclass
class SoakProcess:
    """One process of payagg, started again as often as it dies at its start. `role` is of loopback_process.py."""

    role: str
    port: int
    settings: dict[str, str]
    url: str
    _running: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Returns when it is ready; does nothing where it lives."""
        while self._running is None:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.support.loopback_process", self.role, str(self.port), self.url),
                stderr=asyncio.subprocess.DEVNULL,
                env=environment(**self.settings),
            )
            if self.role != "worker":
                await asyncio.to_thread(wait_until, partial(self._is_ready_or_over, process))
            if process.returncode is None:
                self._running = process

    def _is_ready_or_over(self, process: asyncio.subprocess.Process) -> bool:
        return process.returncode is not None or is_ready(self.port)

    async def kill(self) -> None:
        process, self._running = self._running, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def stop(self) -> None:
        if self._running is not None and self._running.returncode is None:
            self._running.terminate()
            assert await self._running.wait() == 0


@dataclass
class SoakSite:
    postgres: EmbeddedPostgres
    state: Path
    processes: list[SoakProcess]
    shop: Shop
    fake: FakePaystack
    recorder: SoakRecorder
    client: httpx.AsyncClient
    killed: int = field(default=0)

    async def start(self) -> None:
        """Whatever does not run; returns when all of it is ready."""
        await asyncio.gather(*(process.start() for process in self.processes))

    async def kill_one(self, chance: random.Random) -> None:
        self.killed += 1
        await chance.choice(self.processes).kill()

    async def kill_all(self) -> None:
        await asyncio.gather(*(process.kill() for process in self.processes))

    def kill_postgres(self) -> None:
        """Its watch starts it again."""
        with suppress(OSError, ValueError, IndexError):
            os.kill(int((self.state / "postgres" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    async def stop(self) -> None:
        await asyncio.gather(*(process.stop() for process in self.processes))


@asynccontextmanager
async def a_site(state: Path, roles: Sequence[str] = ONE, *, pgbouncer: bool = False) -> AsyncIterator[SoakSite]:
    """The product as one process of each of `roles`, each server on a port of its own, started and selling."""
    with EmbeddedPostgres(state) as postgres:
        migrate(postgres.url)
        store = PostgresStore(postgres.url, pool_size=2, pgbouncer=False)
        async with an_api(services_over(store)) as api:
            shop = await api.open_shop()
        await store.close()
        async with _database(postgres.url, state, pgbouncer=pgbouncer) as url, fakes_running() as fakes:
            settings = SETTINGS | {"PAYAGG_STATE_DIR": str(state)} | ({"PAYAGG_PGBOUNCER": "1"} if pgbouncer else {})
            processes = [SoakProcess(role, free_port(), settings, url) for role in roles]
            ports = [process.port for process in processes if process.role != "worker"]
            book = fakes.paystack.book
            book.webhook_urls = {"test": f"http://127.0.0.1:{ports[0]}/api/v1/webhooks/provider_a/sandbox"}
            base = {"base_url": "http://127.0.0.1/api/v1", "timeout": PATIENCE, "transport": AnyOfThem(ports)}
            async with a_receiver() as merchant, httpx.AsyncClient(**base, trust_env=False) as client:  # type: ignore[arg-type]
                recorder = SoakRecorder(book, merchant)
                site = SoakSite(postgres, state, processes, shop, fakes.paystack, recorder, client)
                await site.start()
                try:
                    await sell_through_provider_a(client, shop, credentials_a(fakes), merchant.origin)
                    yield site
                finally:
                    await site.stop()


@asynccontextmanager
async def _database(url: str, folder: Path, *, pgbouncer: bool) -> AsyncIterator[str]:
    if pgbouncer:
        async with a_pgbouncer(url, folder, SERVER_CONNECTIONS) as through:
            yield through
    else:
        yield url
