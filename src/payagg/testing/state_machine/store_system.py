"""The payment use cases over any Store, driven synchronously: `run` carries each coroutine on the store's own loop."""

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from payagg.adapters.providers.sandbox import Simulator
from payagg.application.checkout import Checkout
from payagg.application.payment_options import PaymentOptions
from payagg.application.payments import Payments
from payagg.application.ports import Entropy, Provider, Store
from payagg.application.provider_calls import ProviderCalls
from payagg.application.schemas.payments import InitiatePayment, PaymentDetail, ProcessPayment
from payagg.application.settlement import Settlement
from payagg.application.verification import Verification
from payagg.domain.business import BusinessStatus
from payagg.domain.gateway import SANDBOX_SLUG, GatewayStatus
from payagg.domain.payment import CHECKOUT_TTL
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg.testing.builders import a_business, a_gateway, an_actor, an_endpoint
from payagg.testing.clocks import ManualClock
from payagg.testing.state_machine.machine import Facts
from payagg.testing.state_machine.model import GATEWAYS
from payagg.testing.state_machine.systems import BASE_URL, NoVault, ScriptedProvider, a_report

R = TypeVar("R")
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class StoreSystem:
    """One fresh business, so that many runs may share a store; `closing` runs when a run ends."""

    def __init__(self, run: Run, store: Store, entropy: Entropy, closing: Callable[[], None] = lambda: None) -> None:
        self.run, self.store, self.entropy, self.close = run, store, entropy, closing
        self.clock = ManualClock()
        self.charges: Counter[str] = Counter()
        self.scripted = {slug: ScriptedProvider(slug, self.charges) for slug in GATEWAYS}
        providers: dict[str, Provider] = {**self.scripted, SANDBOX_SLUG: Simulator()}
        options = PaymentOptions(store, self.clock, NoVault(), providers)
        self.settlement = Settlement(store, self.clock, entropy)
        provider_calls = ProviderCalls(store, self.clock, entropy, BASE_URL)
        self.checkout = Checkout(store, self.clock, entropy, options, provider_calls, self.settlement)
        self.verification = Verification(store, self.clock, options, provider_calls, self.settlement)
        self.payments = Payments(store, self.clock, entropy, self.settlement, options, BASE_URL, CHECKOUT_TTL)
        now = self.clock.now()
        self.business = a_business(entropy.id("biz", now))
        run(self._set_up())

    async def _set_up(self) -> None:
        now = self.clock.now()
        async with self.store.begin() as tx:
            await tx.businesses.add(self.business)
            for environment in Environment:
                id = self.entropy.id("whe", now)
                await tx.webhooks.add_endpoint(an_endpoint(id, environment, business_id=self.business.id))
            for order, slug in enumerate(GATEWAYS):
                gateway = a_gateway(slug, GatewayStatus.DISABLED, display_order=order)
                if await tx.gateways.add(gateway):  # a store shared with earlier runs has it already
                    await tx.gateways.save(gateway.enable(now))

    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, time: timedelta) -> None:
        self.clock.move(time)

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        command = InitiatePayment(amount=amount, idempotency_key=key)
        initiation = self.run(self.payments.initiate(command, self.business, environment))
        reference: str = initiation.payment.reference
        return reference

    def set_standing(self, is_active: bool) -> None:
        self.run(self._set_standing(BusinessStatus.ACTIVE if is_active else BusinessStatus.SUSPENDED))

    async def _set_standing(self, status: BusinessStatus) -> None:
        async with self.store.begin() as tx:
            await tx.businesses.save(replace(self.business, status=status))

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
        report = a_report(payment, number, outcome, right_amount)
        return (await self.settlement.report(report, gateway, environment, f"inbound:{gateway}")).value

    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> str:
        for provider in self.scripted.values():
            provider.says = outcome, right_amount
        return str(self.run(self.verification.verify(reference)).status.value)

    def simulate(self, reference: str, outcome: str) -> None:
        self.run(self.payments.simulate(reference, outcome.lower(), self.business.id, by=an_actor()))

    def sweep(self) -> None:
        while self.run(self.settlement.expire_due()):
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
