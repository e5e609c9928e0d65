"""Fifty callers of a provider that hangs, on a pool of four: they hold no connection, and everybody else is served."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.providers.sandbox import Simulator
from payagg.application import deadline
from payagg.application.payments import provider_calls
from payagg.domain.attempt import AttemptState, Charge, HandOff, HandOffKind
from payagg.domain.payment import Payment, Status
from payagg.domain.report import ProviderReport
from payagg.entrypoints.http.api.openapi.document import API_PATH
from tests.support.http_world import served
from tests.support.provider_world import PATIENCE, World, assembled, world_on

pytestmark = pytest.mark.anyio
POOL = 4
CALLERS = 50
SLUG = "provider_a"
BUSY = Statement("""
SELECT pid, state, query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND backend_type = 'client backend'
""")


class HangingProvider(Simulator):
    """Answers no call before it is released; `waiting` says how many wait."""

    slug = SLUG

    def __init__(self) -> None:
        self.waiting = 0
        self.released = asyncio.Event()

    async def start_charge(self, charge: Charge) -> HandOff:
        await self._hang()
        return HandOff(HandOffKind.REDIRECT, f"https://provider.example/{charge.reference}")

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        await self._hang()
        return await super().fetch_charge(charge)

    async def _hang(self) -> None:
        self.waiting += 1
        try:
            await self.released.wait()
        finally:
            self.waiting -= 1


@dataclass
class HangingSite:
    """A server with a pool of four whose provider hangs, and a client that waits as long as it takes."""

    world: World
    store: PostgresStore
    provider: HangingProvider
    client: httpx.AsyncClient

    async def process(self, payment: Payment) -> httpx.Response:
        return await self.client.post(f"{self._path(payment)}/process", json={"gatewaySlug": SLUG})

    async def verify(self, payment: Payment) -> httpx.Response:
        return await self.client.get(f"{self._path(payment)}/verify")

    def _path(self, payment: Payment) -> str:
        return f"{API_PATH}/public/payments/{payment.reference}"

    @asynccontextmanager
    async def all_hanging(
        self, call: Callable[[Payment], Coroutine[None, None, httpx.Response]], payments: list[Payment]
    ) -> AsyncIterator[list["asyncio.Task[httpx.Response]"]]:
        """Inside the block every payment's call waits for the provider; leaving it lets them all end."""
        self.provider.released.clear()
        calls = [asyncio.create_task(call(payment)) for payment in payments]
        try:
            while self.provider.waiting < len(calls):
                assert not any(task.done() for task in calls)
                await asyncio.sleep(0.01)
            yield calls
        finally:
            self.provider.released.set()
            await asyncio.wait(calls)

    async def ensure_free(self, payments: list[Payment]) -> None:
        """No connection is in use, and what needs some is answered."""
        assert await self.world.store.pool.run(BUSY) == []
        for path in ("/healthz", "/readyz", *map(self._path, payments)):
            answer = await self.client.get(path)
            assert answer.status_code == 200, (path, answer.text)
        for payment in payments:
            assert await self.store.find_payment(payment.reference) is not None
        assert self.provider.waiting == len(payments)


@pytest.fixture
async def site(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HangingSite]:
    monkeypatch.setattr(provider_calls, "CALL_SECONDS", 10 * PATIENCE)  # no call may end before the test has looked
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", PATIENCE)  # nor a slow machine answer 503
    async with world_on(database_url, tmp_path) as world:
        store, provider = PostgresStore(database_url, pool_size=POOL, pgbouncer=False), HangingProvider()
        services = assembled(store, world.clock, tmp_path)
        options = replace(services.payment_options, providers={**services.payment_options.providers, SLUG: provider})
        services = replace(
            services,
            checkout=replace(services.checkout, payment_options=options),
            verification=replace(services.verification, payment_options=options),
        )
        async with (
            served(services) as origin,
            httpx.AsyncClient(base_url=origin, timeout=None, limits=httpx.Limits(max_connections=None)) as client,
        ):
            yield HangingSite(world, store, provider, client)
        await store.close()


async def test_callers_who_wait_for_a_provider_hold_no_connection(site: HangingSite) -> None:
    payments = [await site.world.payment() for _ in range(CALLERS)]
    async with asyncio.timeout(PATIENCE):  # a defect should fail a test, not hang it
        async with site.all_hanging(site.process, payments) as calls:
            await site.ensure_free(payments)
        for payment, call in zip(payments, calls, strict=True):
            assert call.result().json()["data"]["checkoutUrl"] == f"https://provider.example/{payment.reference}"
            assert [a.state for a in await site.world.attempts(payment)] == [AttemptState.HANDED_OFF]

        async with site.all_hanging(site.verify, payments) as calls:
            await site.ensure_free(payments)
        assert {call.result().json()["data"]["status"] for call in calls} == {Status.PENDING.value}
