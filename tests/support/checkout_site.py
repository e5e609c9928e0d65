"""The real application over HTTP on Postgres, in a thread of its own, for tests that drive a browser."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from payagg_testing.builders import AN_ADMIN, a_business, a_gateway, a_payment
from payagg_testing.provider_faults import FakeServers

from payagg.application.ports.store import Transaction
from payagg.application.schemas.checkout import ProcessPayment
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.business import Business, Role
from payagg.domain.checks import with_changes
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services, running
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.process.http_server import QuietServer, http_server, listen
from tests.support.answers.recorder import recorded
from tests.support.assembly import SETTINGS
from tests.support.provider_rigs import fakes_running

T = TypeVar("T")
START_SECONDS = 20
CALLBACK = "https://shop.example/thanks?basket=7"


@dataclass(frozen=True)
class Site:
    base_url: str
    services: Services
    loop: asyncio.AbstractEventLoop
    running_fakes: FakeServers | None

    @property
    def fakes(self) -> FakeServers:
        assert self.running_fakes is not None, "served without its fakes"
        return self.running_fakes

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` on the server's own loop, whose connections it may use."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_SECONDS)

    def within(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Does `work` in a transaction of the store."""

        async def done() -> T:
            async with self.services.store.begin() as tx:
                return await work(tx)

        return self.do(done())

    def business(self, owner: str | None = None, **fields: Any) -> Business:
        business = a_business(**fields)
        self.within(lambda tx: tx.businesses.add(business))
        if owner is not None:
            self.within(lambda tx: tx.members.add(business.id, owner, Role.OWNER))
        return business

    def initiate(self, business: Business, amount: int = 150_000, **fields: Any) -> str:
        """A SANDBOX payment as a merchant starts one; the address of its page."""
        command = InitiatePayment(amount=amount, **{"callback_url": CALLBACK, **fields})
        started = self.do(self.services.payments.initiate(command, business, Environment.SANDBOX))
        return started.payment.checkout_url

    def put(self, **fields: Any) -> str:
        """A payment as it may stand in the database, whatever initiate would say of it; the address of its page."""
        address = fields.pop("callback_url", None)
        fields = {"now": self.services.clock.now(), "ttl": timedelta(hours=1), **fields}
        payment: Payment = with_changes(a_payment(**fields), callback_url=address)
        self.do(self.services.store.add_payment(payment))
        return f"{self.base_url}/checkout/{payment.reference}"

    def put_expired(self, **fields: Any) -> str:
        """The same, its window a minute in the past: each process estimates the database's time for itself."""
        return self.put(now=self.services.clock.now() - timedelta(minutes=1), ttl=timedelta(milliseconds=1), **fields)

    def hand_off(self, page_url: str, card: str) -> None:
        """The payer's choice of the simulator, without a browser: the payment is PENDING after it."""
        choice = ProcessPayment(gateway_slug="sandbox", card_number=card)
        self.do(self.services.checkout.process(page_url[-19:], choice))

    def gateway(self, slug: str, **fields: Any) -> Gateway:
        """The gateway `slug`, there and ACTIVE, with `fields` as given."""
        found = self.within(lambda tx: tx.gateways.by_slug(slug))
        wanted = replace(a_gateway(slug), id=found.id if found else f"gw_{slug}", **fields)
        if found is None:
            self.within(lambda tx: tx.gateways.add(wanted))
        self.within(lambda tx: tx.gateways.save(wanted))
        return wanted

    def configure(self, slug: str, credentials: dict[str, str], **fields: Any) -> None:
        """The gateway `slug`, ACTIVE, with its credentials on file."""
        gateway = self.gateway(slug, **fields)
        sealed = self.services.vault.seal(json.dumps(credentials).encode(), gateway.id)
        self.gateway(slug, credentials=sealed, **fields)

    def simulate(self, page_url: str, outcome: str) -> None:
        self.do(self.services.payments.simulate(page_url[-19:], outcome, "biz_1", by=AN_ADMIN))

    def status(self, page_url: str) -> str:
        payment = self.do(self.services.store.find_payment(page_url[-19:]))
        assert payment is not None
        return payment.status.value


@contextmanager
def served(database_url: str, *, with_fakes: bool = False, **settings: Any) -> Iterator[Site]:
    """A running site on a port of its own, beside the fake providers if asked for; leaving stops it."""
    with closing(listen("127.0.0.1", 0)) as listener:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        configured = replace(SETTINGS, base_url=base_url, logo_store="memory:///", **settings)
        ready, found, servers = threading.Event(), list[Site](), list[QuietServer]()

        async def serve() -> None:
            async with AsyncExitStack() as stack:
                fakes = await stack.enter_async_context(fakes_running()) if with_fakes else None
                sdk = f"{fakes.payaza.base_url}/js/v1/bundle.js" if fakes else configured.sdk_url
                having = configured.having(provider_b_sdk_url=sdk)
                services = await stack.enter_async_context(running(having, database_url))
                servers.append(http_server(recorded(create_app(services)), services.payments.entropy.hex))
                found.append(Site(base_url, services, asyncio.get_running_loop(), fakes))
                ready.set()
                await servers[0].serve([listener])

        thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        thread.start()
        assert ready.wait(START_SECONDS), "the site did not start"
        try:
            yield found[0]
        finally:
            servers[0].should_exit = True
            thread.join(START_SECONDS)
