"""A business with both providers switched on, over a store and the fakes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from payagg_testing.builders import a_business, a_gateway, a_payment, an_endpoint
from payagg_testing.clocks import ManualClock
from payagg_testing.memory import MemoryStore
from payagg_testing.provider_faults import FakeServers

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.security import AesVault
from payagg.application.ports.reports import AnomalyFilter
from payagg.application.ports.store import Store
from payagg.application.schemas.checkout import ProcessedPayment, ProcessPayment
from payagg.domain.anomaly import Anomaly
from payagg.domain.attempt import Attempt
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.domain.webhook import secret_context
from payagg.entrypoints.bootstrap import Services
from tests.contracts.database import Database, autocommit
from tests.support.assembly import KEYS, SETTINGS, services_over
from tests.support.provider_rigs import credentials_a, credentials_b, fakes_running

AMOUNT = 150_000
S = TypeVar("S", bound=Store)
PATIENCE = 60.0  # seconds
PLENTY = 100_000  # a rate limit no test meets by accident


def assembled(store: Store, clock: ManualClock, *, deadline: float = 15.0, limit: int = PLENTY) -> Services:
    """One server process; `deadline` bounds its calls of providers."""
    settings = replace(SETTINGS, webhook_rate_limit=limit)
    providers = providers_of(allow_loopback=True, deadline=deadline)
    return services_over(store, settings, clock, providers=providers)


@dataclass
class StoreWorld(Generic[S]):
    services: Services
    store: S
    clock: ManualClock
    fakes: FakeServers
    folder: Path
    url: str

    @property
    def db(self) -> Database:
        return autocommit(self.store)

    async def payment(self, environment: Environment = Environment.SANDBOX, **fields: Any) -> Payment:
        """An INITIATED payment under a fresh reference."""
        now = self.clock.now()
        reference = self.services.checkout.entropy.reference(now)
        facts: dict[str, Any] = {"reference": reference, "environment": environment, "amount": AMOUNT, "now": now}
        stored, _ = await self.store.add_payment(a_payment(**{**facts, **fields}))
        return stored

    async def process(self, payment: Payment, slug: str = "provider_a") -> ProcessedPayment:
        async with asyncio.timeout(PATIENCE):  # a defect should fail a test, not hang it
            return await self.services.checkout.process(payment.reference, ProcessPayment(gateway_slug=slug))

    async def handed_over(self, slug: str = "provider_a", **fields: Any) -> Payment:
        """A PENDING payment whose payer is at the provider."""
        payment = await self.payment(**fields)
        await self.process(payment, slug)
        return await self.read(payment)

    async def read(self, payment: Payment) -> Payment:
        found = await self.store.find_payment(payment.reference)
        assert found is not None
        return found

    async def attempts(self, payment: Payment) -> list[Attempt]:
        return await self.db.attempts.of_payment(payment.reference)

    async def anomalies(self, payment: Payment | None = None) -> list[Anomaly]:
        return await self.db.anomalies.page(AnomalyFilter(reference=payment.reference if payment else None), 1000)

    async def history(self, payment: Payment) -> list[str]:
        """The statuses the payment went through, from its recorded transitions."""
        return [t.to_status.value for t in await self.db.payments.transitions(payment.reference)]

    async def events(self, payment: Payment) -> tuple[int, int]:
        """How many events and how many deliveries the payment caused."""
        events, deliveries = await self.db.webhook_events.of_payment(payment.reference)
        return len(events), len(deliveries)

    async def set_credentials(self, slug: str, credentials: dict[str, str]) -> None:
        gateway = await self.db.gateways.by_slug(slug)
        assert gateway is not None
        sealed = AesVault(KEYS).seal(json.dumps(credentials).encode(), gateway.id)
        await self.db.gateways.save(replace(gateway, credentials=sealed))

    def other_process(self) -> "Services":
        """The use cases of a second server: nothing shared but the database."""
        return assembled(PostgresStore(self.url, pool_size=10, pgbouncer=False), self.clock)


World = StoreWorld[PostgresStore]


@asynccontextmanager
async def world_in_memory(folder: Path) -> AsyncIterator[StoreWorld[MemoryStore]]:
    async with _world(MemoryStore(), "", folder) as world:
        yield world


@asynccontextmanager
async def world_on(url: str, folder: Path, **settings: Any) -> AsyncIterator[StoreWorld[PostgresStore]]:
    store = PostgresStore(url, pool_size=10, pgbouncer=False)
    async with _world(store, url, folder, **settings) as world:
        yield world
    await store.close()


@asynccontextmanager
async def _world(store: S, url: str, folder: Path, **settings: Any) -> AsyncIterator[StoreWorld[S]]:
    clock = ManualClock()
    async with fakes_running() as fakes:
        world = StoreWorld(assembled(store, clock, **settings), store, clock, fakes, folder, url)
        vault = AesVault(KEYS)
        async with store.begin() as tx:
            await tx.businesses.add(a_business())
            for slug, credentials in (("provider_a", credentials_a(fakes)), ("provider_b", credentials_b(fakes))):
                gateway = await tx.gateways.by_slug(slug)
                if gateway is None:
                    gateway = a_gateway(slug, GatewayStatus.DISABLED)
                    await tx.gateways.add(gateway)
                sealed = vault.seal(json.dumps(credentials).encode(), gateway.id)
                await tx.gateways.save(replace(gateway.enable(clock.now()), credentials=sealed))
            for environment in Environment:
                id = f"whe_{environment.value.lower()}"
                await tx.endpoints.add(an_endpoint(id, environment, secret=vault.seal(b"whsec", secret_context(id))))
        yield world
