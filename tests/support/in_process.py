"""The product as a target of `payagg-testing`, in this process: over the in-memory store, or over Postgres.

It is the application that `serve` runs, asked over ASGI. Its clock is moved by the machines, so that hours and drains
are waited for; its worker works when told; what it sends to merchants goes into an inbox.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import httpx
import structlog
from payagg_testing.clocks import ManualClock
from payagg_testing.conformance.access import AccessError
from payagg_testing.conformance.inbox import Inbox
from payagg_testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg_testing.conformance.service import Service
from payagg_testing.conformance.target import ConformanceTarget, MerchantAccess
from payagg_testing.memory import MemoryStore

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.gateways.seed import seed_gateways
from payagg.application.payments.expiry import sweep_expired
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.store import Store
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role
from payagg.entrypoints.bootstrap import Services, entropy_of, schema_fits, tokens_of
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.settings import Settings, SettingsError
from tests.support.assembly import services_over

PLENTY = 1_000_000_000  # no limit on requests is met: these are not the rules under test
TOKEN_SECONDS = 10 * 365 * 86_400  # longer than any history moves the clock
LIMITS = ("unknown_reference", "webhook_rate", "key_rate", "reference_rate", "business_rate", "refused_body")
NONE: dict[str, Any] = {f"{name}_limit": PLENTY for name in (*LIMITS, "address_rate")}
UNLIMITED = Settings(token_lifetime_max=timedelta(seconds=TOKEN_SECONDS), dev=True, **NONE)
APPROVED, ACTIVE = KycStatus.APPROVED, BusinessStatus.ACTIVE
# Two that may do everything, one before its KYC, one that is suspended.
STANDINGS = [(APPROVED, ACTIVE), (APPROVED, ACTIVE), (KycStatus.PENDING, ACTIVE), (APPROVED, BusinessStatus.SUSPENDED)]
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class InboxSender:
    """A `Sender` that brings every try to the inbox, whatever its scheme: LIVE endpoints need https."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str = "", is_test: bool = False
    ) -> DeliveryAttemptResult:
        status = self._inbox.receive(url, headers, body)
        return DeliveryAttemptResult(status, None if status < 300 else f"status {status}", 1)


class AdvancingClock(ManualClock):
    """No two things happen at one instant, as nowhere else."""

    def now(self) -> datetime:
        self.move(timedelta(microseconds=100))
        return super().now()


class InProcess:
    """Services over one store with keys, businesses and a clock of their own. `run` carries coroutines on the event
    loop that the store lives on."""

    def __init__(self, store: Store, run: Run | None = None) -> None:
        self._runner = asyncio.Runner() if run is None else None
        self.run: Run = self._runner.run if self._runner is not None else run  # type: ignore[assignment]
        self.clock, self.inbox = AdvancingClock(), Inbox("https://inbox.example")
        chance = entropy_of(UNLIMITED)
        keys = (("harness", chance.bytes(32)),)
        settings = replace(UNLIMITED, jwt_key=chance.hex(32), jwt_algorithm="HS256", encryption_keys=keys)
        self.services: Services = services_over(
            store, settings, self.clock, tokens=tokens_of(settings), sender=InboxSender(self.inbox)
        )

    def target(self, **own: Any) -> ConformanceTarget:
        """`own`: what else of a target is to be there."""
        *merchants, unapproved, suspended = self.run(self._merchants())
        url, transport = "http://service.example/api/v1", httpx.ASGITransport(cast(Any, create_app(self.services)))
        service = Service(url, transport=transport, run=self.run, wait=self.clock.move, work=self.work)
        who = tuple(merchants), self._token("administrator", type="admin", role="ADMIN"), unapproved, suspended
        return ConformanceTarget(service, *who, inbox=self.inbox, **own)

    def work(self) -> None:
        self.run(self._work())

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    def _token(self, subject: str, **claims: Any) -> str:
        return self.services.tokens.issue({"sub": subject, **claims}, TOKEN_SECONDS, int(self.clock.now().timestamp()))

    async def _work(self) -> None:
        services = self.services
        while await sweep_expired(services.settlement):
            pass
        await services.gateways.end_drains()
        await services.gateway_settling.wipe()
        while await services.dispatcher.run_once():
            pass

    async def _merchants(self) -> tuple[MerchantAccess, ...]:
        services, made = self.services, list[MerchantAccess]()
        settings = services.settings
        looks = {spec.slug: spec.branding for spec in settings.providers}
        await seed_gateways(services.gateways, settings.builtin_slug, looks)
        for number, (kyc, status) in enumerate(STANDINGS, 1):
            now = services.clock.now()
            id = services.payments.entropy.id("biz", now)
            async with services.store.begin() as tx:
                await tx.businesses.add(Business(id, f"Shop {number}", status, kyc, now))
                await tx.members.add(id, f"owner-{number}", Role.OWNER)
            made.append(MerchantAccess(id, self._token(f"owner-{number}", type="merchant", emailVerified=True)))
        return tuple(made)


async def _store_at(database_url: str | None) -> Store:
    if database_url is None:
        return MemoryStore()
    if not await schema_fits(UNLIMITED, database_url):
        raise SettingsError("the database has not this release's schema: run `payagg migrate` on it first")
    return PostgresStore(database_url, pool_size=UNLIMITED.pool_size, pgbouncer=UNLIMITED.pgbouncer)


def target(database_url: str | None = None) -> ConformanceTarget:
    """The product over the in-memory store, or over the database at the URL, which must be migrated and a test's own:
    what the machines make stays there. Raises AccessError when there is no such database."""
    runner, logs = asyncio.Runner(), structlog.get_config()
    try:
        store = runner.run(_store_at(database_url))
    except (SettingsError, Unavailable) as error:
        runner.close()
        raise AccessError(str(error)) from None
    a, b = ProviderAccount("provider_a"), ProviderBAccount("provider_b")
    # A line for each request would bury the verdicts.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))

    def closing() -> None:
        structlog.configure(**logs)
        if database_url is not None:
            runner.run(store.close())  # type: ignore[attr-defined]  # the in-memory store has nothing to close
        runner.close()

    return InProcess(store, runner.run).target(provider=a, provider_b=b, closing=closing)
