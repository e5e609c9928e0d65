"""The product over HTTP with a proxy before each of its neighbours, and a watch on what it must never do."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from payagg_testing.builders import AN_ADMIN
from payagg_testing.fault_proxy import FaultProxy

from lab.faults.cells import Neighbour
from lab.kit.around import AroundProvider
from payagg.adapters.postgres import pool
from payagg.adapters.postgres.store import PostgresStore, PostgresTransaction
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.system import SystemClock
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application import deadline
from payagg.application.ports.webhooks import TryResult
from payagg.application.schemas.webhooks import CreateWebhook
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, Shop, an_api
from tests.support.postgres_world import by_proxy
from tests.support.provider_rigs import credentials_a, credentials_b
from tests.support.provider_world import World, world_on
from tests.support.receivers import Receiver, a_receiver

POOL = 6  # connections: fewer than the payers
IMPATIENCE = 2.0  # seconds for an answer of anybody, in place of 8 and 15
_in_transaction: ContextVar[bool] = ContextVar("in_transaction", default=False)


class WatchedStore(PostgresStore):
    """The product's store, which knows whether the running task is inside a transaction."""

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[PostgresTransaction]:
        _in_transaction.set(True)
        try:
            async with super().begin() as tx:
                yield tx
        finally:
            _in_transaction.set(False)


class WatchedSender(HttpSender):
    def __init__(self, watch: Callable[[], None]) -> None:
        super().__init__(allow_loopback=True, deadline=IMPATIENCE)
        self.watch = watch

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **more: Any) -> TryResult:
        self.watch()
        return await super().send(url, headers, body, **more)


@dataclass
class FaultSite:
    """`world` looks at the database past the proxy. `wrong`: what the product did that it never may."""

    world: World
    api: Api
    shop: Shop
    merchant: Receiver
    proxies: dict[Neighbour, FaultProxy]
    wrong: list[str]


@asynccontextmanager
async def a_fault_site(url: str, folder: Path) -> AsyncIterator[FaultSite]:
    wrong: list[str] = []

    def watch() -> None:
        if _in_transaction.get():
            wrong.append("a provider or a merchant is called while a database connection is held")

    patience, pool.ANSWER_WAIT = pool.ANSWER_WAIT, IMPATIENCE
    of_a_request, deadline.REQUEST_SECONDS = deadline.REQUEST_SECONDS, IMPATIENCE
    try:
        async with AsyncExitStack() as stack:
            world = await stack.enter_async_context(world_on(url, folder))
            merchant = await stack.enter_async_context(a_receiver())
            # The doctor reads the database's clock, and the scene moves this one on.
            world.clock.set(SystemClock().now() - timedelta(hours=12))
            places = {
                Neighbour.PROVIDER_A: world.fakes.paystack.base_url,
                Neighbour.PROVIDER_B: world.fakes.payaza.base_url,
                Neighbour.MERCHANT: merchant.origin,
            }
            proxies = {
                place: await stack.enter_async_context(FaultProxy("127.0.0.1", urlsplit(origin).port or 0))
                for place, origin in places.items()
            }
            proxies[Neighbour.POSTGRES], own_url = await stack.enter_async_context(by_proxy(url))
            await _lead_through(proxies, world)
            store = WatchedStore(own_url, pool_size=POOL, pgbouncer=False)
            stack.push_async_callback(store.close)
            sender = WatchedSender(watch)
            stack.push_async_callback(sender.close)
            providers = providers_of(allow_loopback=True, deadline=IMPATIENCE)
            world.services = services_over(
                store,
                SETTINGS,
                world.clock,
                providers={slug: AroundProvider(one, before=watch) for slug, one in providers.items()},
                sender=sender,
            )
            api = await stack.enter_async_context(an_api(world.services))
            shop = await api.open_shop()
            origin = f"http://127.0.0.1:{proxies[Neighbour.MERCHANT].port}"
            wanted = CreateWebhook(url=origin, environment=Environment.SANDBOX)
            await world.services.webhooks.create(shop.business.id, wanted, by=AN_ADMIN)
            for fake, slug in ((world.fakes.paystack, "provider_a"), (world.fakes.payaza, "provider_b")):
                fake.book.webhook_urls = {"test": f"{api.origin}/api/v1/webhooks/{slug}/sandbox"}
                fake.book.webhooks = WebhookMode.HELD
            yield FaultSite(world, api, shop, merchant, proxies, wrong)
            for proxy in proxies.values():
                proxy.heal()
    finally:
        pool.ANSWER_WAIT, deadline.REQUEST_SECONDS = patience, of_a_request


async def _lead_through(proxies: dict[Neighbour, FaultProxy], world: World) -> None:
    """Makes the proxies the addresses of the providers."""
    a, b = (f"http://127.0.0.1:{proxies[place].port}" for place in (Neighbour.PROVIDER_A, Neighbour.PROVIDER_B))
    await world.set_credentials("provider_a", {**credentials_a(world.fakes), "sandboxBaseUrl": a})
    await world.set_credentials("provider_b", {**credentials_b(world.fakes), "sandboxBaseUrl": f"{b}/live"})
