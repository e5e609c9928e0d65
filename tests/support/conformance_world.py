"""The product as a target of the conformance machines, in this process, over any store."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx

from payagg.adapters.memory import MemoryStore
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.ports import Store, TryResult
from payagg.domain.business import Business, BusinessStatus, KycStatus, Role
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.app import create_app
from payagg.testing.clocks import ManualClock
from payagg.testing.conformance.inbox import Inbox
from payagg.testing.conformance.provider import ProviderAccount
from payagg.testing.conformance.service import Service
from payagg.testing.conformance.target import ConformanceTarget, MerchantAccess
from tests.support.assembly import SETTINGS, services_over
from tests.support.http_world import admin_token, merchant_token

PLENTY = 1_000_000_000  # no limit on requests is met: these are not the rules under test
UNLIMITED = replace(
    SETTINGS,
    unknown_reference_limit=PLENTY,
    webhook_rate_limit=PLENTY,
    key_rate_limit=PLENTY,
    reference_rate_limit=PLENTY,
    business_rate_limit=PLENTY,
    refused_body_limit=PLENTY,
    address_rate_limit=PLENTY,
)
Application = Any  # ASGI, as httpx's transport takes it
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class InboxSender(HttpSender):
    """Brings every try to the inbox, whatever its scheme: LIVE endpoints need https."""

    def __init__(self, inbox: Inbox) -> None:
        super().__init__(allow_loopback=True)
        self._inbox = inbox

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str = "", is_test: bool = False
    ) -> TryResult:
        status = self._inbox.receive(url, headers, body)
        return TryResult(status, None if status < 300 else f"status {status}", 1)


class AdvancingClock(ManualClock):
    """No two things happen at one instant, as nowhere else."""

    def now(self) -> datetime:
        self.move(timedelta(microseconds=100))
        return super().now()


class InProcess:
    """Services over one store with a clock of their own; `target` may put something round the application."""

    def __init__(
        self, store: Store | None = None, run: Run | None = None, sender: "Callable[[Inbox], InboxSender] | None" = None
    ) -> None:
        self._runner = asyncio.Runner() if run is None else None
        self.run: Run = self._runner.run if self._runner is not None else run  # type: ignore[assignment]
        self.clock = AdvancingClock()
        self.inbox = Inbox("https://inbox.example")
        self.services: Services = services_over(
            store or MemoryStore(), UNLIMITED, self.clock, sender=(sender or InboxSender)(self.inbox)
        )

    def target(
        self, within: Callable[[Application], Application] = lambda app: app, provider: ProviderAccount | None = None
    ) -> ConformanceTarget:
        *merchants, unapproved, suspended = self.run(self._merchants())
        app = within(create_app(self.services))
        service = Service(
            "http://service.example/api/v1",
            transport=httpx.ASGITransport(app),
            run=self.run,
            wait=self.clock.move,
            work=self.work,
        )
        return ConformanceTarget(
            service, tuple(merchants), admin_token(), unapproved, suspended, inbox=self.inbox, provider=provider
        )

    def work(self) -> None:
        self.run(self._work())

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    async def _work(self) -> None:
        services = self.services
        while await services.settlement.expire_due():
            pass
        await services.gateways.end_drains()
        await services.gateway_settling.wipe()
        while await services.dispatcher.run_once():
            pass

    async def _merchants(self) -> tuple[MerchantAccess, ...]:
        services = self.services
        await services.gateways.seed("builtin", ("provider_a", "provider_b"))
        made = []
        approved, active = KycStatus.APPROVED, BusinessStatus.ACTIVE
        standings = [(approved, active), (approved, active), (KycStatus.PENDING, active)]
        for number, (kyc, status) in enumerate([*standings, (approved, BusinessStatus.SUSPENDED)], 1):
            now = services.clock.now()
            id = services.payments.entropy.id("biz", now)
            business = Business(id, f"Shop {number}", status, kyc, now)
            async with services.store.begin() as tx:
                await tx.businesses.add(business)
                await tx.businesses.set_member(id, f"owner-{number}", Role.OWNER)
            made.append(MerchantAccess(id, merchant_token(f"owner-{number}")))
        return tuple(made)
