"""One business on the memory store, with providers that do as they are told: for unit tests of the use cases."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from payagg_testing.builders import a_business, a_gateway, a_key, the_built_in
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore
from payagg_testing.state_machine.system import Said

from payagg.adapters.providers.sandbox import Simulator
from payagg.application.ports.outside import Clock, Entropy
from payagg.application.ports.reports import AnomalyFilter
from payagg.application.schemas.checkout import ProcessedPayment, ProcessPayment
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import Attempt, Charge, HandOff
from payagg.domain.business import Role
from payagg.domain.gateway import SANDBOX_SLUG, Gateway
from payagg.domain.health import Health
from payagg.domain.payment import Payment
from payagg.domain.report import FaultKind, Outcome, ProviderFault, ProviderReport
from payagg.domain.values import Environment
from tests.contracts.database import put
from tests.support.assembly import services_over
from tests.support.state_machine.scripted import ACCOUNT, LabelVault, ScriptedProvider

SHOP = "biz_1"
SLUGS = ("provider_a", "provider_b")


@dataclass
class StandIn(ScriptedProvider):
    """A scripted provider that also fails as told, keeps the charges it was asked about, and answers when it may. Each
    environment has an account of its own; credentials with an "only" serve that environment alone."""

    start_faults: list[FaultKind] = field(default_factory=list)  # of the next calls, one each
    start_fault: FaultKind | None = None
    fetch_fault: FaultKind | None = None
    reason: str | None = None
    started: list[Charge] = field(default_factory=list)
    fetched: list[Charge] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event | None = None
    seconds: float = 0.0  # that a call takes

    def is_configured(self, credentials: Mapping[str, str], environment: Environment) -> bool:
        return ACCOUNT in credentials and credentials.get("only", environment.value) == environment.value

    def account(self, credentials: Mapping[str, str], environment: Environment) -> str | None:
        return f"{environment.value} {credentials[ACCOUNT]}" if ACCOUNT in credentials else None

    async def start_charge(self, charge: Charge) -> HandOff:
        self.started.append(charge)
        self.called.set()
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.start_faults:
            raise ProviderFault(self.start_faults.pop(0))
        if self.may_answer is not None:
            await self.may_answer.wait()
        if self.start_fault is not None:
            raise ProviderFault(self.start_fault)
        return await super().start_charge(charge)

    async def fetch_charge(self, charge: Charge) -> ProviderReport:
        self.fetched.append(charge)
        self.called.set()
        if self.may_answer is not None:
            await self.may_answer.wait()
        if self.fetch_fault is not None:
            raise ProviderFault(self.fetch_fault)
        return replace(self.says.report(charge.reference, charge.amount), reason=self.reason)


class MemoryShop:
    """`open` makes the business with a key for each environment, and both provider gateways ACTIVE with credentials."""

    def __init__(
        self, clock: Clock | None = None, entropy: Entropy | None = None, store: MemoryStore | None = None
    ) -> None:
        self.store, self.clock = store or MemoryStore(), ManualClock()
        self.vault = LabelVault()
        self.a, self.b = (StandIn(slug, Counter()) for slug in SLUGS)
        providers = {"provider_a": self.a, "provider_b": self.b, SANDBOX_SLUG: Simulator()}
        self.services = services_over(
            self.store,
            clock=clock or self.clock,
            entropy=entropy or SeededEntropy(),
            vault=self.vault,
            providers=providers,  # type: ignore[arg-type]
        )
        self.payments, self.checkout = self.services.payments, self.services.checkout
        self.verification, self.reconciler = self.services.verification, self.services.reconciler

    async def open(self, *, keys: bool = True) -> "MemoryShop":
        gateways = (a_gateway(slug, credentials=self.sealed(slug)) for slug in SLUGS)
        await put(self.store.transaction, a_business(SHOP), the_built_in(), *gateways)
        await self.store.transaction.members.add(SHOP, "ada", Role.OWNER)
        for environment in Environment if keys else ():
            key = a_key(f"key_{environment.value.lower()}", environment, business_id=SHOP)
            await self.store.transaction.api_keys.add(key)
        return self

    def sealed(self, slug: str, **more: str) -> bytes:
        return self.vault.seal(json.dumps({ACCOUNT: f"account of {slug}", **more}).encode(), f"gw_{slug}")

    async def change(self, slug: str, **fields: Any) -> None:
        """Changes the gateway of that slug."""
        changed = a_gateway(slug, **{"credentials": self.sealed(slug), **fields})
        await self.store.transaction.gateways.save(changed)

    async def gateway(self, slug: str) -> Gateway | None:
        return await self.store.transaction.gateways.by_slug(slug)

    async def initiated(self, environment: Environment = Environment.SANDBOX, **fields: Any) -> str:
        """The reference of a new payment of 1,500 naira."""
        command = InitiatePayment(**{"amount": 150000, **fields})
        return (await self.payments.initiate(command, a_business(SHOP), environment)).payment.reference

    async def process(
        self, reference: str, slug: str | None = "provider_a", card: str | None = None
    ) -> ProcessedPayment:
        return await self.checkout.process(reference, ProcessPayment(gateway_slug=slug, card_number=card))

    async def call_under_way(self, reference: str) -> "tuple[asyncio.Task[ProcessedPayment], asyncio.Event]":
        """The `process` of a payer whose charge provider_a begins, and the event that lets it answer."""
        self.a.called.clear()
        self.a.may_answer = gate = asyncio.Event()
        call = asyncio.create_task(self.process(reference))
        await self.a.called.wait()
        return call, gate

    async def pause(self, until: datetime) -> None:
        """Calls of provider_a in SANDBOX, for its faults."""
        health = Health("provider_a", Environment.SANDBOX, Health.FAULTS_MAX, until, Health.FIRST_PAUSE)
        await self.store.transaction.health.save(health)

    async def handed_over(self, slug: str = "provider_a", **fields: Any) -> str:
        reference = await self.initiated(**fields)
        await self.process(reference, slug)
        return reference

    async def payment(self, reference: str) -> Payment:
        found = await self.store.find_payment(reference)
        assert found is not None
        return found

    async def attempts(self, reference: str) -> list[Attempt]:
        return await self.store.transaction.attempts.of_payment(reference)

    async def anomalies(self) -> list[AnomalyKind]:
        return [anomaly.kind for anomaly in await self.store.transaction.anomalies.page(AnomalyFilter(), 100)]

    async def events(self, reference: str) -> list[str]:
        events, _ = await self.store.transaction.webhook_events.of_payment(reference)
        return [event.type for event in events]

    def says(self, outcome: Outcome, *, right_amount: bool = True, reason: str | None = None) -> None:
        for provider in (self.a, self.b):
            provider.says, provider.reason = Said(outcome, "WHOLE" if right_amount else "MORE"), reason
