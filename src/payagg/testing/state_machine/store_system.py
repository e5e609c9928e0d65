"""The payment use cases over any Store, driven synchronously: `run` carries each coroutine on the store's own loop."""

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, TypeVar

from payagg.adapters.providers.sandbox import Simulator
from payagg.application.checkout import Checkout
from payagg.application.checkout_settings import CheckoutSettings
from payagg.application.gateway_settling import GatewaySettling
from payagg.application.gateways import Gateways
from payagg.application.payment_options import PaymentOptions
from payagg.application.payments import Payments
from payagg.application.ports import Entropy, Provider
from payagg.application.provider_calls import ProviderCalls
from payagg.application.provider_events import ProviderEventRoute, ProviderEvents
from payagg.application.reconciliation import Reconciler
from payagg.application.refused_events import RefusedEvents
from payagg.application.schemas.gateways import CreateGateway, UpdateCredentials
from payagg.application.schemas.payments import InitiatePayment, PaymentDetail, ProcessPayment, TestPayment
from payagg.application.settlement import Settlement
from payagg.application.store import Store, Transaction
from payagg.application.verification import Verification
from payagg.domain.business import BusinessStatus
from payagg.domain.checks import revised
from payagg.domain.gateway import DRAIN_WINDOW, SANDBOX_SLUG
from payagg.domain.payment import CHECKOUT_TTL
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg.testing.builders import AN_ADMIN, a_business, a_key, an_actor, an_endpoint
from payagg.testing.clocks import ManualClock
from payagg.testing.state_machine.model import GATEWAYS
from payagg.testing.state_machine.scripted import (
    ACCOUNT,
    HeardSettlement,
    LabelVault,
    NoFiles,
    PunctualEntropy,
    ScriptedProvider,
)
from payagg.testing.state_machine.system import Facts, GatewayFacts
from payagg.testing.state_machine.systems import BASE_URL, a_report

R = TypeVar("R")
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class StoreSystem:
    """One fresh business and fresh gateways, so that many runs may share a store, one after the other; `closing` runs
    when a run ends."""

    def __init__(self, run: Run, store: Store, entropy: Entropy, closing: Callable[[], None] = lambda: None) -> None:
        self.run, self.store, self.close = run, store, closing
        self.entropy = PunctualEntropy(entropy)
        self.clock = ManualClock()
        self.charges: Counter[str] = Counter()
        self.scripted = {slug: ScriptedProvider(slug, self.charges) for slug in GATEWAYS}
        self.gateway_ids: dict[str, list[str]] = {slug: [] for slug in GATEWAYS}
        self.event_numbers = count(1)
        self._assemble({**self.scripted, SANDBOX_SLUG: Simulator()})
        self.business = a_business(entropy.id("biz", self.clock.now()))
        run(self._set_up())

    def _assemble(self, providers: dict[str, Provider]) -> None:
        store, clock, entropy, vault, files = self.store, self.clock, self.entropy, LabelVault(), NoFiles()
        options = PaymentOptions(store, clock, vault, providers)
        self.settlement = Settlement(store, clock, entropy)
        calls = ProviderCalls(store, clock, entropy, BASE_URL)
        self.checkout = Checkout(store, clock, entropy, options, calls, self.settlement)
        self.verification = Verification(store, clock, options, calls, self.settlement)
        self.reconciler = Reconciler(store, clock, entropy, options, calls, self.settlement)
        self.payments = Payments(store, clock, entropy, self.settlement, options, BASE_URL, CHECKOUT_TTL)
        self.heard = HeardSettlement(store, clock, entropy)
        self.events = ProviderEvents(store, clock, entropy, options, self.heard, RefusedEvents(store, clock))
        reserved = frozenset({SANDBOX_SLUG})
        self.gateways = Gateways(store, clock, entropy, vault, files, files, providers, reserved, DRAIN_WINDOW)
        self.settling = GatewaySettling(store, clock, entropy)
        self.checkout_settings = CheckoutSettings(store, clock, entropy)

    async def _set_up(self) -> None:
        now = self.clock.now()
        async with self.store.begin() as tx:
            await self._clear_gateways(tx)
            await tx.businesses.add(self.business)
            await tx.api_keys.add(a_key(self.entropy.id("key", now), business_id=self.business.id))
            for environment in Environment:
                id = self.entropy.id("whe", now)
                await tx.webhooks.add_endpoint(an_endpoint(id, environment, business_id=self.business.id))
        for slug in GATEWAYS:
            await self._move_gateway(slug, "CREATE")
            await self._move_gateway(slug, "ENABLE")

    async def _clear_gateways(self, tx: Transaction) -> None:
        """What earlier runs left, in whatever state: move by move, as the database checks each."""
        now = self.clock.now()
        for gateway in await tx.gateways.all():
            disabled = gateway
            if disabled.is_active:
                disabled = disabled.disable(now)
                await tx.gateways.save(disabled)
            if disabled.drain_ends_at is not None:
                disabled = disabled.as_of(disabled.drain_ends_at)
                await tx.gateways.save(disabled)
            await tx.gateways.save(disabled.delete(now))
        for gateway in await tx.gateways.to_wipe(now):
            await tx.gateways.save(revised(gateway, credentials=None))

    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, time: timedelta) -> None:
        self.clock.move(time)

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        command = InitiatePayment(amount=amount, idempotency_key=key)
        initiation = self.run(self.payments.initiate(command, self.business, environment))
        reference: str = initiation.payment.reference
        return reference

    def initiate_test(self, amount: int, key: str | None) -> str:
        command = TestPayment(amount=amount, idempotency_key=key)
        initiation = self.run(self.payments.initiate_test(command, self.business, by=an_actor()))
        reference: str = initiation.payment.reference
        return reference

    def set_standing(self, is_active: bool) -> None:
        self.run(self._set_standing(BusinessStatus.ACTIVE if is_active else BusinessStatus.SUSPENDED))

    async def _set_standing(self, status: BusinessStatus) -> None:
        async with self.store.begin() as tx:
            await tx.businesses.save(replace(self.business, status=status))

    def move_gateway(self, slug: str, move: str) -> None:
        self.run(self._move_gateway(slug, move))

    async def _move_gateway(self, slug: str, move: str) -> None:
        """Each account is named after its gateway's id."""
        if move == "CREATE":
            created = await self.gateways.create(CreateGateway(slug=slug, name=slug), by=AN_ADMIN)
            self.gateway_ids[slug].append(created.id)
            credentials = UpdateCredentials(credentials={ACCOUNT: created.id})
            await self.gateways.set_credentials(created.id, credentials, by=AN_ADMIN)
            return
        newest = self.gateway_ids[slug][-1]
        if move == "ENABLE":
            await self.gateways.enable(newest, by=AN_ADMIN)
        elif move == "DISABLE":
            await self.gateways.disable(newest, by=AN_ADMIN)
        else:
            await self.gateways.delete(newest, by=AN_ADMIN)

    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        listed = self.run(self.checkout.options(reference)).gateways
        return frozenset((option.slug, option.available) for option in listed)

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        for provider in self.scripted.values():
            provider.refuses = refused
        command = ProcessPayment(gateway_slug=gateway, card_number=card)
        url: str = self.run(self.checkout.process(reference, command)).checkout_url
        return url

    def report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        return str(self.run(self._report(reference, number, gateway, outcome, right_amount, environment)))

    async def _report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        payment = await self.store.find_payment(reference)
        assert payment is not None
        async with self.store.begin() as tx:
            taken = [a for a in await tx.payments.attempts(reference) if (a.number, a.gateway) == (number, gateway)]
        signature = (taken[0].gateway_id if taken else None) or self.gateway_ids[gateway][-1]
        provider = self.scripted[gateway]
        body = provider.event(a_report(payment, number, outcome, right_amount), next(self.event_numbers))
        route = ProviderEventRoute("receiveEvent", gateway, environment, f"/{gateway}")
        self.heard.heard.clear()
        await self.events.receive(route, body, {provider.header: signature})
        return self.heard.heard[0] if self.heard.heard else "UNHANDLED"

    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> str:
        self._will_say(outcome, right_amount)
        return str(self.run(self.verification.verify(reference)).status.value)

    def _will_say(self, outcome: Outcome, right_amount: bool) -> None:
        for provider in self.scripted.values():
            provider.says = outcome, right_amount

    def simulate(self, reference: str, outcome: str) -> None:
        self.run(self.payments.simulate(reference, outcome.lower(), self.business.id, by=an_actor()))

    def sweep(self) -> None:
        while self.run(self.settlement.expire_due()):
            pass
        self.run(self.gateways.end_drains())
        self.run(self.settling.wipe())

    def reconcile(self, outcome: Outcome, right_amount: bool) -> None:
        self._will_say(outcome, right_amount)
        while self.run(self.reconciler.run_once()):
            pass

    def facts(self, reference: str) -> Facts:
        facts: Facts = self.run(self._facts(reference))
        return facts

    async def _facts(self, reference: str) -> Facts:
        async with self.store.begin() as tx:
            stored = await tx.payments.get(reference)
            transitions = await tx.payments.transitions(reference)
            attempts = await tx.payments.attempts(reference)
            anomalies = await tx.anomalies.of_payment(reference)
            events, deliveries = await tx.webhooks.of_payment(reference)
        assert stored is not None
        payment = stored.as_of(self.clock.now())
        detail = await self.payments.read(reference, self.business.id, payment.environment)
        assert detail == PaymentDetail.of(payment), "the merchant is told something else than what is stored"
        return Facts(
            payment=payment,
            transitions=tuple(transitions),
            events=tuple((event.sequence, event.type) for event in events),
            delivered=tuple(sorted(delivery.sequence for delivery in deliveries)),
            hand_offs=tuple(a.hand_off.checkout_url for a in attempts if a.hand_off is not None),
            charges=self.charges[reference],
            last_decline=next((a.last_decline for a in attempts if a.last_decline), None),
            anomalies=frozenset(anomaly.kind.value for anomaly in anomalies),
        )

    def gateway_facts(self) -> GatewayFacts:
        facts: GatewayFacts = self.run(self._gateway_facts())
        return facts

    async def _gateway_facts(self) -> GatewayFacts:
        listed = await self.gateways.listed()
        offered = await self.checkout_settings.listed(self.business.id)
        kept = []
        async with self.store.begin() as tx:
            for slug, ids in self.gateway_ids.items():
                for number, id in enumerate(ids, 1):
                    gateway = await tx.gateways.get_any(id)
                    if gateway is not None and gateway.has_credentials:
                        kept.append((slug, number))
        return GatewayFacts(
            listed=tuple(sorted((gateway.slug, gateway.status) for gateway in listed)),
            offered=tuple(sorted(gateway.slug for gateway in offered)),
            with_credentials=tuple(kept),
        )
