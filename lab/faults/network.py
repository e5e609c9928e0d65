"""The faults of a network, the places where they strike, and the product over HTTP with a proxy before each."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

from payagg_testing.builders import AN_ADMIN
from payagg_testing.fault_proxy import FaultProxy
from payagg_testing.network_faults import (
    COMMITTED,
    Blackhole,
    Delay,
    Direction,
    Drip,
    DropReply,
    HalfOpen,
    NetworkFault,
    Peer,
    Reset,
    Then,
)

from lab.kit.around import around
from lab.kit.places import long_ago
from payagg.adapters.postgres import pool
from payagg.adapters.postgres.store import PostgresStore, PostgresTransaction
from payagg.adapters.providers.registry import providers_of
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application import deadline
from payagg.application.schemas.webhooks import CreateWebhook
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import Book, WebhookMode
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import Api, Shop, an_api
from tests.support.postgres_world import by_proxy
from tests.support.provider_rigs import credentials_a, credentials_b
from tests.support.provider_world import World, world_on
from tests.support.receivers import Receiver, a_receiver

POOL = 6  # connections: fewer than the payers
IMPATIENCE = 2.0  # seconds for an answer of anybody, in place of 8 and 15
_in_transaction: ContextVar[bool] = ContextVar("in_transaction", default=False)


class Neighbour(Enum):
    """The other end of the connections that fail."""

    POSTGRES = "Postgres"
    PROVIDER_A = "provider_a"
    PROVIDER_B = "provider_b"
    MERCHANT = "the merchant"


@dataclass(frozen=True)
class NetworkFaultKind:
    name: str
    words: str
    fault: NetworkFault
    places: tuple[Neighbour, ...] = tuple(Neighbour)


POSTGRES = (Neighbour.POSTGRES,)
SILENT_COMMIT = DropReply(at=COMMITTED, then=Then.SILENCE)
KINDS = (
    NetworkFaultKind("delay", "every piece 20 ms late", Delay(0.02)),
    NetworkFaultKind("drip", "16 bytes every 10 ms", Drip(16, 0.01)),
    NetworkFaultKind("blackhole", "every byte swallowed, nobody told", Blackhole()),
    NetworkFaultKind("reset-there", "RST after 20 bytes of a request", Reset(20, Direction.TO_SERVER)),
    NetworkFaultKind("reset-back", "RST after 20 bytes of answers", Reset(20)),
    NetworkFaultKind("half-open", "the other end closed at its answer, we are not told", HalfOpen(Peer.SERVER)),
    NetworkFaultKind("half-open-us", "our end closed at an answer, the other is not told", HalfOpen(Peer.CLIENT)),
    NetworkFaultKind("reply-reset", "the request delivered, its answer lost by RST", DropReply()),
    NetworkFaultKind("reply-silence", "the request delivered, its answer never comes", DropReply(then=Then.SILENCE)),
    NetworkFaultKind("commit-reset", "the answer of COMMIT lost by RST", DropReply(at=COMMITTED), POSTGRES),
    NetworkFaultKind("commit-silence", "the answer of COMMIT never comes", SILENT_COMMIT, POSTGRES),
)
# Ends of statements, as Postgres reports them in the middle of a transaction.
TAGS = (b"INSERT 0 1", b"UPDATE 1", b"SELECT 1")


def drawn(seed: int) -> tuple[NetworkFaultKind, Neighbour]:
    """A fault at bytes that nobody chose, mostly on the way to Postgres; it may be one that never strikes."""
    chance = random.Random(seed)
    neighbour = chance.choice([*Neighbour, Neighbour.POSTGRES, Neighbour.POSTGRES])
    is_postgres = neighbour is Neighbour.POSTGRES
    after = chance.randrange(8_000 if is_postgres else 1_000)
    faults: list[NetworkFault] = [
        Reset(after),
        Reset(after, Direction.TO_SERVER),
        HalfOpen(chance.choice(list(Peer))),
        Drip(chance.randrange(8, 512), 0.005),
        DropReply(at=chance.choice(TAGS) if is_postgres else b"", then=chance.choice(list(Then))),
    ]
    fault = chance.choice(faults)
    return NetworkFaultKind(f"seed {seed}", str(fault), fault, (neighbour,)), neighbour


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


@dataclass
class FaultSite:
    """`world` looks at the database past the proxy. `wrong`: what the product did that it never may."""

    world: World
    api: Api
    shop: Shop
    merchant: Receiver
    proxies: dict[Neighbour, FaultProxy]
    wrong: list[str]

    @property
    def books(self) -> dict[str, Book]:
        return {"provider_a": self.world.fakes.paystack.book, "provider_b": self.world.fakes.payaza.book}


@asynccontextmanager
async def a_fault_site(url: str, folder: Path) -> AsyncIterator[FaultSite]:
    wrong: list[str] = []

    def watch() -> None:
        if _in_transaction.get():
            wrong.append("a provider or a merchant is called while a database connection is held")

    async with AsyncExitStack() as stack:
        stack.enter_context(patch.object(pool, "ANSWER_WAIT", IMPATIENCE))
        stack.enter_context(patch.object(deadline, "REQUEST_SECONDS", IMPATIENCE))
        world = await stack.enter_async_context(world_on(url, folder))
        merchant = await stack.enter_async_context(a_receiver())
        world.clock.set(long_ago())
        places = {
            Neighbour.PROVIDER_A: world.fakes.paystack.base_url,
            Neighbour.PROVIDER_B: world.fakes.payaza.base_url,
            Neighbour.MERCHANT: merchant.origin,
        }
        proxies = {
            place: await stack.enter_async_context(FaultProxy("127.0.0.1", urlsplit(origin).port or 0))
            for place, origin in places.items()
        }
        a, b, to_merchant = (f"http://127.0.0.1:{proxies[place].port}" for place in places)
        await world.set_credentials("provider_a", {**credentials_a(world.fakes), "sandboxBaseUrl": a})
        await world.set_credentials("provider_b", {**credentials_b(world.fakes), "sandboxBaseUrl": f"{b}/live"})
        proxies[Neighbour.POSTGRES], own_url = await stack.enter_async_context(by_proxy(url))
        store = WatchedStore(own_url, pool_size=POOL, pgbouncer=False)
        stack.push_async_callback(store.close)
        sender = HttpSender(allow_loopback=True, deadline=IMPATIENCE)
        stack.push_async_callback(sender.close)
        around(sender, "send", before=watch)
        providers = providers_of(allow_loopback=True, deadline=IMPATIENCE)
        for provider in providers.values():
            for call in ("start_charge", "fetch_charge"):
                around(provider, call, before=watch)
        world.services = services_over(store, SETTINGS, world.clock, providers=providers, sender=sender)
        api = await stack.enter_async_context(an_api(world.services))
        shop = await api.open_shop()
        wanted = CreateWebhook(url=to_merchant, environment=Environment.SANDBOX)
        await world.services.webhooks.create(shop.business.id, wanted, by=AN_ADMIN)
        site = FaultSite(world, api, shop, merchant, proxies, wrong)
        for slug, book in site.books.items():
            book.webhook_urls = {"test": f"{api.origin}/api/v1/webhooks/{slug}/sandbox"}
            book.webhooks = WebhookMode.HELD
        yield site
        for proxy in proxies.values():
            proxy.heal()
