"""Fifty callers of a provider that hangs, on a pool of four: they hold no connection, and everybody else is served."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.application import deadline
from payagg.application.payments import provider_calls
from payagg.domain.attempt import AttemptState
from payagg.domain.payment import Payment, Status
from payagg.entrypoints.http.api.openapi.document import API_PATH
from tests.support.assembly import services_over
from tests.support.http_world import served
from tests.support.memory_shop import StandIn
from tests.support.provider_world import PATIENCE, world_on
from tests.support.state_machine.scripted import ACCOUNT

POOL = 4
CALLERS = 50
SLUG = "provider_a"
BUSY = Statement("""
SELECT pid, state, query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND backend_type = 'client backend'
""")


async def test_callers_who_wait_for_a_provider_hold_no_connection(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_calls, "CALL_SECONDS", 10 * PATIENCE)  # no call may end before the test has looked
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", PATIENCE)  # nor a slow machine answer 503
    store, provider = PostgresStore(database_url, pool_size=POOL, pgbouncer=False), StandIn(SLUG, Counter())
    async with (
        asyncio.timeout(PATIENCE * 2),  # a defect should fail a test, not hang it
        world_on(database_url, tmp_path) as world,
        served(services_over(store, clock=world.clock, providers={SLUG: provider})) as origin,
        httpx.AsyncClient(base_url=origin, timeout=None, limits=httpx.Limits(max_connections=None)) as client,
    ):
        await world.set_credentials(SLUG, {ACCOUNT: "of the shop"})
        payments = [await world.payment() for _ in range(CALLERS)]

        def path(payment: Payment) -> str:
            return f"{API_PATH}/public/payments/{payment.reference}"

        @asynccontextmanager
        async def hanging(
            method: str, name: str, **more: object
        ) -> AsyncIterator[list["asyncio.Task[httpx.Response]"]]:
            """Inside the block every payment's call waits for the provider; leaving it lets them all end."""
            provider.may_answer, asked = asyncio.Event(), len(provider.started + provider.fetched)
            one = [client.request(method, f"{path(payment)}/{name}", **more) for payment in payments]  # type: ignore[arg-type]
            calls = [asyncio.create_task(call) for call in one]
            try:
                while len(provider.started + provider.fetched) < asked + CALLERS:
                    assert not any(call.done() for call in calls)
                    await asyncio.sleep(0.01)
                yield calls
            finally:
                provider.may_answer.set()
                await asyncio.wait(calls)

        async def ensure_free() -> None:
            """No connection is in use, and what needs some is answered."""
            assert await world.store.pool.run(BUSY) == []
            for place in ("/healthz", "/readyz", *map(path, payments)):
                answer = await client.get(place)
                assert answer.status_code == 200, (place, answer.text)
            for payment in payments:
                assert await store.find_payment(payment.reference) is not None

        async with hanging("POST", "process", json={"gatewaySlug": SLUG}) as calls:
            await ensure_free()
            assert not any(call.done() for call in calls)
        for payment, call in zip(payments, calls, strict=True):
            assert payment.reference in call.result().json()["data"]["checkoutUrl"]
            assert [a.state for a in await world.attempts(payment)] == [AttemptState.HANDED_OFF]
        async with hanging("GET", "verify") as calls:
            await ensure_free()
            assert not any(call.done() for call in calls)
        assert {call.result().json()["data"]["status"] for call in calls} == {Status.PENDING.value}
    await store.close()
