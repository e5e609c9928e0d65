"""The payment machine on the pure domain and on the memory store, and proof that it notices planted defects."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from payagg.adapters.memory import MemoryStore
from payagg.adapters.memory.gateways import MemoryGateways
from payagg.adapters.memory.payments import MemoryPayments
from payagg.application.payment_options import ChosenProvider, PaymentOptions
from payagg.application.settlement import Settlement
from payagg.application.store import Transaction
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import Attempt
from payagg.domain.checks import revised
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SANDBOX_SLUG, Gateway, GatewayStatus
from payagg.domain.payment import EXPIRED_REASON, PAYMENT, Payment, Transition
from payagg.domain.report import TRIGGER_FOR, Outcome
from payagg.domain.values import Environment
from payagg.testing.clocks import SeededEntropy
from payagg.testing.state_machine.machine import payment_machine
from payagg.testing.state_machine.model import GATEWAYS
from payagg.testing.state_machine.store_system import StoreSystem
from payagg.testing.state_machine.system import Facts, GatewayFacts, PaymentSystem
from payagg.testing.state_machine.systems import DomainSystem
from tests.support.rounds import scaled

BRIEF = settings(max_examples=scaled(60), stateful_step_count=50, deadline=None, database=None)
# Planted defects need not be made small, only found; the same search each time keeps the test from flickering.
HUNT = settings(BRIEF, max_examples=1000, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)


def on_memory(store: MemoryStore | None = None) -> StoreSystem:
    runner = asyncio.Runner()
    return StoreSystem(runner.run, store or MemoryStore(), SeededEntropy(), closing=runner.close)


@pytest.mark.parametrize("make_system", [DomainSystem, on_memory])
def test_no_history_breaks_a_promise(make_system: Callable[[], PaymentSystem]) -> None:
    run_state_machine_as_test(payment_machine(make_system), settings=BRIEF)


SOMETIMES = {
    "DUPLICATE_PAYMENT",
    "GATEWAY_ALREADY_ENABLED",
    "GATEWAY_IN_USE",
    "GATEWAY_NOT_ACTIVE",
    "GATEWAY_NOT_AVAILABLE",
    "GATEWAY_SLUG_EXISTS",
    "INVALID_WEBHOOK_SIGNATURE",
    "NOT_FOUND",
    "NO_GATEWAY_AVAILABLE",
    "PAYMENT_ALREADY_FINAL",
    "PAYMENT_ALREADY_PROCESSED",
    "PAYMENT_AMOUNT_MISMATCH",
    "PAYMENT_EXPIRED",
    "PAYMENT_NOT_FOUND",
    "MOVED",
    "MOVED through a deleted gateway",
    "UNCHANGED",
    "ANOMALY",
    "MISMATCH",
    "DECLINED",
    "LATE_SUCCESS",
    "LATE_FAILURE",
    "LATE_REVERSAL",
    "payment.late_success",
    "payment.refunded",
    "DISPUTE",
    "payment.disputed",
    "NO_EVIDENCE",
    "WRONG_ENVIRONMENT",
    "WRONG_PROVIDER",
    "INITIATED PROCESS",
    "INITIATED SUCCEED",
    "INITIATED FAIL",
    "INITIATED REVERSE",
    "INITIATED EXPIRE",
    "PENDING EXPIRE",
    "PENDING SUCCEED",
    "PENDING FAIL",
    "PENDING REVERSE",
}


@pytest.mark.long
def test_the_search_meets_every_refusal_move_and_anomaly() -> None:
    machine = payment_machine(DomainSystem)
    run_state_machine_as_test(machine, settings=settings(HUNT, max_examples=1000))
    # Two attempts that both succeed are too rare to be sure of; test_settlement.py has them.
    assert set(machine.seen) - {"SECOND_CHARGE"} == SOMETIMES


class OverwritesFinalStates(DomainSystem):
    def report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        payment = self.payments[reference]
        if payment.is_final and outcome in TRIGGER_FOR and self.attempts[reference]:
            self.payments[reference] = revised(payment, status=PAYMENT.moves[PAYMENT.initial, TRIGGER_FOR[outcome]])
        return super().report(reference, number, gateway, outcome, right_amount, environment)


class ForgetsExpiryUntilTheSweep(DomainSystem):
    def facts(self, reference: str) -> Facts:
        return replace(super().facts(reference), payment=self.payments[reference])


class ExpiresAnInstantLate(DomainSystem):
    def facts(self, reference: str) -> Facts:
        seen = self.payments[reference].as_of(self.now() - timedelta(microseconds=1))
        return replace(super().facts(reference), payment=seen)


class TakesPaymentsPastTheWindow(DomainSystem):
    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        payment = self.payments[reference]
        self.payments[reference] = replace(payment, expires_at=payment.expires_at + timedelta(days=1))
        try:
            return super().process(reference, gateway, card, refused)
        finally:
            self.payments[reference] = replace(self.payments[reference], expires_at=payment.expires_at)


class HandsOffTwice(DomainSystem):
    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        earlier, self.attempts[reference] = self.attempts[reference], []
        try:
            return super().process(reference, gateway, card, refused)
        finally:
            self.attempts[reference] = earlier + self.attempts[reference]


class BelievesAnyAmount(DomainSystem):
    def report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        return super().report(reference, number, gateway, outcome, True, environment)


class BelievesAnyProvider(DomainSystem):
    def report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        taken = self.attempts[reference][number - 1 : number]
        return super().report(
            reference, number, taken[0].gateway if taken else gateway, outcome, right_amount, environment
        )


class ServesASuspendedBusiness(DomainSystem):
    def set_standing(self, is_active: bool) -> None:
        """Whatever is said of it, it takes money."""


class ForgetsIdempotencyKeys(DomainSystem):
    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        self.keys.clear()
        return super().initiate(amount, environment, key)


class SharesKeysBetweenEnvironments(DomainSystem):
    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        if key is not None:
            self.keys = {
                (e, key): self.keys[known] for known in self.keys for e in type(environment) if known[1] == key
            }
        return super().initiate(amount, environment, key)


class DropsLateNews(DomainSystem):
    def note(self, reference: str, kind: AnomalyKind) -> None:
        if not kind.value.startswith("LATE"):
            super().note(reference, kind)


class SkipsASequenceNumber(DomainSystem):
    def write(self, payment: Payment, transition: Transition | None) -> Payment:
        if transition is not None and transition.sequence > 1:
            transition = replace(transition, sequence=transition.sequence + 1)
        return super().write(payment, transition)


class SweepsPendingPaymentsToo(DomainSystem):
    def sweep(self) -> None:
        for payment in list(self.payments.values()):
            if not payment.is_final and self.now() >= payment.expires_at:
                self.write(*payment.expire())


class WritesBeforeItRefuses(DomainSystem):
    def simulate(self, reference: str, outcome: str) -> None:
        payment = self.payments[reference]
        if payment.failure_reason == EXPIRED_REASON:
            self.payments[reference] = replace(payment, updated_at=self.now() + timedelta(seconds=1))
        super().simulate(reference, outcome)


class ServesLiveWithTheSimulator(DomainSystem):
    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        payment = self.payments[reference]
        self.payments[reference] = replace(payment, environment=Environment.SANDBOX)
        try:
            return super().process(reference, gateway, card, refused)
        finally:
            self.payments[reference] = replace(self.payments[reference], environment=payment.environment)


class WipesSecretsAtOnce(DomainSystem):
    def move_gateway(self, slug: str, move: str) -> None:
        super().move_gateway(slug, move)
        if move == "DELETE":
            self.gateways[slug][-1] = replace(self.gateways[slug][-1], credentials=None)


class WipesSecretsOfOpenAttempts(DomainSystem):
    def sweep(self) -> None:
        super().sweep()
        for known in self.gateways.values():
            known[:] = [gateway.wiped(self.now(), has_open_attempts=False) for gateway in known]


class KeepsSecretsForEver(DomainSystem):
    def sweep(self) -> None:
        before = {slug: [gateway.credentials for gateway in known] for slug, known in self.gateways.items()}
        super().sweep()
        for slug, known in self.gateways.items():
            known[:] = [replace(g, credentials=kept) for g, kept in zip(known, before[slug], strict=True)]


class ListsDeletedGateways(DomainSystem):
    def gateway_facts(self) -> GatewayFacts:
        newest = [known[-1].as_of(self.now()) for known in self.gateways.values()]
        listed = tuple((gateway.slug, gateway.status.value) for gateway in newest)
        return replace(super().gateway_facts(), listed=listed)


class ShowsDrainingGateways(DomainSystem):
    def is_active(self, slug: str) -> bool:
        living = self.living(slug)
        return living is not None and living.status is not GatewayStatus.DISABLED


class ForgetsDrainsUntilTheSweep(DomainSystem):
    def living(self, slug: str) -> Gateway | None:
        known = [gateway for gateway in self.gateways[slug] if gateway.status is not GatewayStatus.DELETED]
        return known[-1] if known else None


class DeletesWhileDraining(DomainSystem):
    def move_gateway(self, slug: str, move: str) -> None:
        living = self.living(slug)
        if move == "DELETE" and living is not None and living.drain_ends_at is not None:
            self.gateways[slug][-1] = living.as_of(living.drain_ends_at)
        super().move_gateway(slug, move)


class KeepsSlugsOfDeletedGateways(DomainSystem):
    def move_gateway(self, slug: str, move: str) -> None:
        if move == "CREATE" and self.gateways[slug]:
            raise Refusal(ErrorCode.GATEWAY_SLUG_EXISTS)
        super().move_gateway(slug, move)


class ChargesThroughDeletedGateways(DomainSystem):
    def may_choose(self, payment: Payment, slug: str) -> bool:
        return super().may_choose(payment, slug) or (slug in GATEWAYS and not payment.is_test)

    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        payment = self.payments[reference]
        slugs = [slug for slug in (*GATEWAYS, SANDBOX_SLUG) if super(type(self), self).may_choose(payment, slug)]
        return frozenset((slug, self.business.is_active) for slug in slugs)


class StopsAskingOnceDeleted(DomainSystem):
    def can_ask(self, attempt: Attempt) -> bool:
        account = self.account(attempt)
        return account is None or account.status is not GatewayStatus.DELETED


class ExpiresPaymentsOnSilence(DomainSystem):
    def ask(self, attempt: Attempt, outcome: Outcome, right_amount: bool) -> None:
        super().ask(attempt, Outcome.UNPAID if outcome is Outcome.PENDING else outcome, right_amount)


class OffersProvidersForTestPayments(DomainSystem):
    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        providers = {(slug, self.business.is_active) for slug in GATEWAYS if self.is_active(slug)}
        return super().options(reference) | providers


class ServesTestPaymentsWithProviders(DomainSystem):
    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        payment = self.payments[reference]
        self.payments[reference] = replace(payment, is_test=False)
        try:
            return super().process(reference, gateway, card, refused)
        finally:
            self.payments[reference] = replace(self.payments[reference], is_test=payment.is_test)


@dataclass(frozen=True)
class MuteSettlement(Settlement):
    """Moves payments and tells nobody."""

    async def write(
        self, tx: Transaction, payment: Payment, transition: Transition | None, subscribers: object = None
    ) -> Payment:
        if transition is not None:
            await tx.payments.save(payment, transition)
        return payment


@dataclass(frozen=True)
class ForgetfulRows(MemoryPayments):
    """Writes the status and not the transition."""

    async def save(self, payment: Payment, transition: Transition) -> None:
        await super().save(payment, transition)
        del self.state.transitions[payment.reference, transition.sequence]


def with_mute_settlement() -> StoreSystem:
    system = on_memory()
    mute = MuteSettlement(system.store, system.clock, system.entropy)
    system.settlement = mute
    system.checkout = replace(system.checkout, settlement=mute)
    system.payments = replace(system.payments, settlement=mute)
    return system


@dataclass(frozen=True)
class OptionsByNewestGateway(PaymentOptions):
    """Asks through another account than the one that holds the charge."""

    async def assigned(self, tx: Transaction, attempt: Attempt, environment: Environment) -> ChosenProvider | None:
        newest = await tx.gateways.by_slug(attempt.gateway)
        return await super().assigned(tx, replace(attempt, gateway_id=newest.id) if newest else attempt, environment)


def with_options_by_newest_gateway() -> StoreSystem:
    system = on_memory()
    own = system.verification.payment_options
    options = OptionsByNewestGateway(own.store, own.clock, own.vault, own.providers)
    system.verification = replace(system.verification, payment_options=options)
    system.reconciler = replace(system.reconciler, payment_options=options)
    return system


@dataclass(frozen=True)
class LivingGateways(MemoryGateways):
    """Finds no secrets but those of gateways that live."""

    async def settling(self, slug: str) -> list[Gateway]:
        return [gateway for gateway in await super().settling(slug) if gateway.status is not GatewayStatus.DELETED]


def with_signatures_of_living_gateways() -> StoreSystem:
    store = MemoryStore()
    store.transaction = replace(store.transaction, gateways=LivingGateways(store.state))
    return on_memory(store)


def with_forgetful_rows() -> StoreSystem:
    store = MemoryStore()
    store.transaction = replace(store.transaction, payments=ForgetfulRows(store.state))
    return on_memory(store)


DEFECTS = [
    *DomainSystem.__subclasses__(),
    with_mute_settlement,
    with_forgetful_rows,
    with_options_by_newest_gateway,
    with_signatures_of_living_gateways,
]


@pytest.mark.parametrize("defective", DEFECTS, ids=lambda defect: defect.__name__)
def test_the_machine_notices_a_planted_defect(defective: Callable[[], PaymentSystem]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(payment_machine(defective), settings=HUNT)
