"""The product as processes before one database, with a provider, a merchant and a shop that sells through them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from lab.kit.buyer import Buyer, a_client
from lab.kit.judgement import paid_in, wrongs
from lab.kit.processes import Processes, until
from payagg.adapters.postgres.store import PostgresStore
from payagg.entrypoints.dev.fake_providers import FakePaystack
from tests.support.assembly import services_over
from tests.support.http_world import Shop, admin_token, an_api, bearer, merchant_token, sell_through_provider_a
from tests.support.ports import free_port
from tests.support.processes import SECRETS, environment, is_ready
from tests.support.provider_rigs import credentials_a, fakes_running
from tests.support.receivers import Receiver, a_receiver

# No limit of requests, for a load that comes from one address.
LIMITS = ("KEY_RATE", "BUSINESS_RATE", "REFERENCE_RATE", "ADDRESS_RATE", "UNKNOWN_REFERENCE")
UNLIMITED = {f"PAYAGG_{name}_LIMIT": "1000000" for name in LIMITS}
LOOPBACK = (sys.executable, "-m", "lab.kit.loopback_process")
# A Python, and the PYTHONPATH of the release that it runs with its own laboratory.
Installed = tuple[str, str]


async def opened_shop(url: str) -> Shop:
    store = PostgresStore(url, pool_size=2, pgbouncer=False)
    async with an_api(services_over(store)) as api:
        shop = await api.open_shop()
    await store.close()
    return shop


async def shop_over_http(
    client: httpx.AsyncClient, name: str, owner: str, **headers: str
) -> tuple[str, dict[str, str]]:
    """A new business of whatever release answers, and the headers of its sandbox key."""
    as_admin = bearer(admin_token()) | headers
    made = await client.post("admin/businesses", json={"name": name, "owner": owner}, headers=as_admin)
    business = str(made.raise_for_status().json()["data"]["id"])
    place, wanted = f"merchant/businesses/{business}/api-keys", {"environment": "SANDBOX", "name": "Server"}
    key = await client.post(place, json=wanted, headers=bearer(merchant_token(owner)))
    return business, bearer(key.raise_for_status().json()["data"]["secretKey"])


@dataclass
class Site:
    """`ports`: by the names of the processes, those of workers unused. `previous`: what every other process runs."""

    url: str
    direct: str  # the database past proxies
    settings: dict[str, str]
    ports: dict[str, int]
    shop: Shop
    provider: FakePaystack
    merchant: Receiver
    clients: list[httpx.AsyncClient]
    processes: Processes
    previous: Installed | None = None

    def start(self) -> None:
        """Whatever does not run; returns when all of it is ready. What dies at its start is started again."""

        def start(name: str) -> None:
            command = [*LOOPBACK, name.rstrip("0123456789"), str(self.ports[name]), self.url]
            environ = environment(**self.settings)
            if self.previous is not None and name[-1] in "13579":
                command[0], environ["PYTHONPATH"] = self.previous
            self.processes.start(name, command, environ)

        def is_up() -> bool:
            for name in self.ports:
                if not self.processes.lives(name):
                    start(name)
            return all(map(is_ready, self.servers))

        until(is_up, "payagg ready")

    @property
    def servers(self) -> list[int]:
        """Their ports."""
        return [port for name, port in self.ports.items() if not name.startswith("worker")]

    async def all_told(self, seconds: float) -> None:
        """Until the merchant has the webhook of each payment that the database, past any proxy, calls paid."""
        paid = await asyncio.to_thread(paid_in, self.direct)
        await asyncio.to_thread(
            until, lambda: self.merchant.told("payment.success").keys() >= paid, "all are told", seconds
        )

    def buyer(self, retry: tuple[float, float]) -> Buyer:
        return Buyer(self.clients, self.shop.as_sandbox, self.shop.business.id, self.provider, retry)

    def wrongs(self, *buyers: Buyer) -> list[str]:
        return wrongs(self.direct, buyers, {"provider_a": self.provider.book}, self.merchant)


@asynccontextmanager
async def a_site(
    url: str,
    folder: Path,
    roles: Sequence[str] = ("both",),
    previous: Installed | None = None,
    /,
    *,
    direct: str = "",
    **settings: str,
) -> AsyncIterator[Site]:
    """A process for each of `roles` of loopback_process.py, started and selling. `direct`: the database past proxies."""
    whole = {
        "PAYAGG_SHUTDOWN_DELAY": "0",
        "PAYAGG_STATE_DIR": str(folder),
        "PAYAGG_POOL_SIZE": "5",
        "PAYAGG_PROVIDER_NETWORKS": "127.0.0.0/8",
    }
    shop = await opened_shop(direct or url)
    async with AsyncExitStack() as stack:
        fakes = await stack.enter_async_context(fakes_running())
        merchant = await stack.enter_async_context(a_receiver())
        ports = {f"{role}{number}": free_port() for number, role in enumerate(roles)}
        processes, clients = stack.enter_context(Processes(folder)), list[httpx.AsyncClient]()
        own = SECRETS | whole | settings
        site = Site(url, direct or url, own, ports, shop, fakes.paystack, merchant, clients, processes, previous)
        clients += [await stack.enter_async_context(a_client(port)) for port in site.servers]
        fakes.paystack.book.webhook_urls = {"test": f"{clients[0].base_url}webhooks/provider_a/sandbox"}
        await asyncio.to_thread(site.start)
        await sell_through_provider_a(clients[0], shop, credentials_a(fakes), merchant.origin)
        yield site
