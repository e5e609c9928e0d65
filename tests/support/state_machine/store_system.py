"""The payment use cases over any Store, driven synchronously: `run` carries each coroutine on the store's own loop."""

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Protocol, TypeVar

from payagg_testing.builders import AN_ADMIN, a_business, a_key, an_actor, an_endpoint
from payagg_testing.clocks import ManualClock
from payagg_testing.state_machine.model import GATEWAYS
from payagg_testing.state_machine.system import Facts, GatewayFacts, Said

from payagg.adapters.providers.sandbox import Simulator
from payagg.application.payments.expiry import sweep_expired
from payagg.application.ports.outside import Entropy
from payagg.application.ports.providers import ProviderEventRoute
from payagg.application.ports.store import Store, Transaction
from payagg.application.schemas.checkout import ProcessPayment
from payagg.application.schemas.gateways import CreateGateway, UpdateCredentials
from payagg.application.schemas.payments import InitiatePayment, PaymentDetail, TestPayment
from payagg.domain.attempt import provider_reference
from payagg.domain.business import BusinessStatus
from payagg.domain.checks import with_changes
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.values import Environment
from tests.support.assembly import services_over
from tests.support.state_machine.scripted import ACCOUNT, HeardSettlement, LabelVault, PunctualEntropy, ScriptedProvider

R = TypeVar("R")


class Run(Protocol):
    def __call__(self, work: Coroutine[Any, Any, R], /) -> R: ...


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
        self.newest_accounts: dict[str, str] = {}
        self.event_numbers, self.accounts = count(1), count(1)
        self.services = services_over(
            store,
            clock=self.clock,
            entropy=self.entropy,
            vault=LabelVault(),
            providers={**self.scripted, SANDBOX_SLUG: Simulator()},
            lists={},
        )
        self.heard = HeardSettlement(store, self.clock, self.entropy)
        self.events = replace(self.services.provider_events, settlement=self.heard)
        self.business = a_business(entropy.id("biz", self.clock.now()))
        run(self._set_up())

    async def _set_up(self) -> None:
        now = self.clock.now()
        async with self.store.begin() as tx:
            await self._clear_gateways(tx)
            await tx.businesses.add(self.business)
            await tx.api_keys.add(a_key(self.entropy.id("key", now), business_id=self.business.id))
            for environment in Environment:
                id = self.entropy.id("whe", now)
                await tx.endpoints.add(an_endpoint(id, environment, business_id=self.business.id))
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
            emptied = {"credentials": None, "replaced_secrets": None, "replaced_secrets_until": None}
            await tx.gateways.save(with_changes(gateway, **emptied))

    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, time: timedelta) -> None:
        self.clock.move(time)

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        command = InitiatePayment(amount=amount, idempotency_key=key)
        return self.run(self.services.payments.initiate(command, self.business, environment)).payment.reference

    def initiate_test(self, amount: int, key: str | None) -> str:
        command = TestPayment(amount=amount, idempotency_key=key)
        work = self.services.payments.initiate_test(command, self.business, by=an_actor())
        return self.run(work).payment.reference

    def set_standing(self, is_active: bool) -> None:
        status = BusinessStatus.ACTIVE if is_active else BusinessStatus.SUSPENDED

        async def save() -> None:
            async with self.store.begin() as tx:
                await tx.businesses.save(replace(self.business, status=status))

        self.run(save())

    def move_gateway(self, slug: str, move: str) -> None:
        self.run(self._move_gateway(slug, move))

    async def _move_gateway(self, slug: str, move: str) -> None:
        if move == "CREATE":
            created = await self.services.gateways.create(CreateGateway(slug=slug, name=slug), by=AN_ADMIN)
            self.gateway_ids[slug].append(created.id)
        newest = self.gateway_ids[slug][-1]
        if move in ("CREATE", "ROTATE"):
            account = f"{newest} {next(self.accounts)}"
            credentials = UpdateCredentials(credentials={ACCOUNT: account})
            await self.services.gateways.set_credentials(newest, credentials, by=AN_ADMIN)
            self.newest_accounts[slug] = account
            return
        gateways = self.services.gateways
        moves = {"ENABLE": gateways.enable, "DISABLE": gateways.disable, "DELETE": gateways.delete}
        await moves[move](newest, by=AN_ADMIN)

    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        listed = self.run(self.services.checkout.options(reference)).gateways
        return frozenset((option.slug, option.available) for option in listed)

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        for provider in self.scripted.values():
            provider.refuses = refused
        command = ProcessPayment(gateway_slug=gateway, card_number=card)
        return self.run(self.services.checkout.process(reference, command)).checkout_url

    def report(self, reference: str, number: int, gateway: str, said: Said, environment: Environment) -> str:
        return self.run(self._report(reference, number, gateway, said, environment))

    async def _report(self, reference: str, number: int, gateway: str, said: Said, environment: Environment) -> str:
        payment = await self.store.find_payment(reference)
        assert payment is not None
        async with self.store.begin() as tx:
            taken = [a for a in await tx.attempts.of_payment(reference) if (a.number, a.gateway) == (number, gateway)]
        signature = (taken[0].account if taken else None) or self.newest_accounts[gateway]
        provider = self.scripted[gateway]
        report = said.report(provider_reference(reference, number), payment.amount)
        body = provider.event(report, next(self.event_numbers))
        route = ProviderEventRoute("receiveEvent", gateway, environment, f"/{gateway}")
        self.heard.heard.clear()
        await self.events.receive(route, body, {provider.header: signature})
        return self.heard.heard[0] if self.heard.heard else "UNHANDLED"

    def verify(self, reference: str, said: Said) -> str:
        self._will_say(said)
        return self.run(self.services.verification.verify(reference)).status.value

    def _will_say(self, said: Said) -> None:
        for provider in self.scripted.values():
            provider.says = said

    def simulate(self, reference: str, outcome: str) -> None:
        self.run(self.services.payments.simulate(reference, outcome.lower(), self.business.id, by=an_actor()))

    def sweep(self) -> None:
        while self.run(sweep_expired(self.services.settlement)):
            pass
        self.run(self.services.gateways.end_drains())
        self.run(self.services.gateway_settling.wipe())

    def reconcile(self, said: Said) -> None:
        self._will_say(said)
        while self.run(self.services.reconciler.run_once()):
            pass

    def facts(self, reference: str) -> Facts:
        return self.run(self._facts(reference))

    async def _facts(self, reference: str) -> Facts:
        found = await self.store.find_payment(reference)
        assert found is not None
        # The first read after the window's end writes the expiry, so it comes before the rows are looked at.
        detail = await self.services.payments.read(reference, self.business.id, found.environment)
        async with self.store.begin() as tx:
            stored = await tx.payments.get(reference)
            transitions = await tx.payments.transitions(reference)
            attempts = await tx.attempts.of_payment(reference)
            anomalies = await tx.anomalies.of_payment(reference)
            events, deliveries = await tx.webhook_events.of_payment(reference)
        assert stored is not None
        payment = stored.as_of(self.clock.now())
        assert detail == PaymentDetail.of(payment, anomalies), "the merchant is told something else than what is stored"
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
        return self.run(self._gateway_facts())

    async def _gateway_facts(self) -> GatewayFacts:
        listed = await self.services.gateways.list_gateways()
        offered = await self.services.checkout_settings.list_gateways(self.business.id)
        made = [(slug, number, id) for slug, ids in self.gateway_ids.items() for number, id in enumerate(ids, 1)]
        async with self.store.begin() as tx:
            found = [(slug, number, await tx.gateways.get_any(id)) for slug, number, id in made]
        return GatewayFacts(
            listed=tuple(sorted((gateway.slug, gateway.status) for gateway in listed)),
            offered=tuple(sorted(gateway.slug for gateway in offered)),
            with_credentials=tuple((slug, number) for slug, number, one in found if one and one.has_credentials),
        )
