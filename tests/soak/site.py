"""The product to be killed: a serving process with a worker, and its embedded Postgres; both start again."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from payagg.adapters.postgres.migrations.upgrade import migrate
from payagg.adapters.postgres.store import PostgresStore
from payagg.testing.fake_providers import FakePaystack
from tests.soak.recorder import SoakRecorder
from tests.support.assembly import services_over
from tests.support.http_world import Shop, admin_token, an_api, bearer
from tests.support.processes import SECRETS, environment, is_ready, wait_until
from tests.support.provider_rigs import credentials_a, fakes_running
from tests.support.receivers import a_receiver

QUICK_STOP = SECRETS | {"PAYAGG_SHUTDOWN_DELAY": "0"}
PATIENCE = 30.0  # seconds for one answer


@dataclass
class SoakSite:
    postgres: EmbeddedPostgres
    state: Path
    port: int
    shop: Shop
    fake: FakePaystack
    recorder: SoakRecorder
    client: httpx.AsyncClient
    _process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """The serving process; returns when it is ready, started again as often as it dies at its start."""
        while True:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.soak.server", str(self.port), self.postgres.url),
                stderr=asyncio.subprocess.DEVNULL,
                env=environment(PAYAGG_STATE_DIR=str(self.state), PAYAGG_POOL_SIZE="5", **QUICK_STOP),
            )
            await asyncio.to_thread(wait_until, partial(self._is_ready_or_over, self._process))
            if self._process.returncode is None:
                return

    def _is_ready_or_over(self, process: asyncio.subprocess.Process) -> bool:
        return process.returncode is not None or is_ready(self.port)

    async def kill_process(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def kill_postgres(self) -> None:
        """Its watch starts it again."""
        with suppress(OSError, ValueError, IndexError):
            os.kill(int((self.state / "postgres" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            assert await self._process.wait() == 0


@asynccontextmanager
async def a_site(state: Path) -> AsyncIterator[SoakSite]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with EmbeddedPostgres(state) as postgres:
        migrate(postgres.url)
        store = PostgresStore(postgres.url, pool_size=2, pgbouncer=False)
        async with an_api(services_over(store)) as api:
            shop = await api.open_shop()
        await store.close()
        async with (
            fakes_running() as fakes,
            a_receiver() as merchant,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1", trust_env=False, timeout=PATIENCE) as client,
        ):
            book = fakes.paystack.book
            book.webhook_urls = {"test": f"http://127.0.0.1:{port}/api/v1/webhooks/provider_a/sandbox"}
            site = SoakSite(postgres, state, port, shop, fakes.paystack, SoakRecorder(book, merchant), client)
            await site.start()
            try:
                admin = bearer(admin_token())
                gateways = (await client.get("/admin/gateways", headers=admin)).json()["data"]
                [gateway] = [one["id"] for one in gateways if one["slug"] == "provider_a"]
                place = f"/admin/gateways/{gateway}"
                sealed = await client.patch(
                    f"{place}/credentials", headers=admin, json={"credentials": credentials_a(fakes)}
                )
                sealed.raise_for_status()
                (await client.post(f"{place}/enable", headers=admin)).raise_for_status()
                endpoint = {"url": merchant.origin, "environment": "SANDBOX"}
                made = await client.post(f"{shop.path}/webhooks", headers=shop.as_owner, json=endpoint)
                made.raise_for_status()
                yield site
            finally:
                await site.stop()
