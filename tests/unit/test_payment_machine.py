"""The payment machine on the pure domain and on the memory store, and proof that it notices planted defects."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from payagg.adapters.memory import MemoryStore
from payagg.adapters.memory.payments import MemoryPayments
from payagg.application.ports import Transaction
from payagg.application.settlement import Settlement
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.checks import revised
from payagg.domain.payment import EXPIRED_REASON, PAYMENT, Payment, Transition
from payagg.domain.report import TRIGGER_FOR, Outcome
from payagg.domain.values import Environment
from payagg.testing.clocks import SeededEntropy
from payagg.testing.state_machine.machine import Facts, PaymentSystem, payment_machine
from payagg.testing.state_machine.store_system import StoreSystem
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
    "GATEWAY_NOT_AVAILABLE",
    "PAYMENT_ALREADY_FINAL",
    "PAYMENT_ALREADY_PROCESSED",
    "PAYMENT_AMOUNT_MISMATCH",
    "PAYMENT_EXPIRED",
    "PAYMENT_NOT_FOUND",
    "MOVED",
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
    "WRONG_ENVIRONMENT",
    "WRONG_PROVIDER",
    "INITIATED PROCESS",
    "INITIATED SUCCEED",
    "INITIATED FAIL",
    "INITIATED REVERSE",
    "INITIATED EXPIRE",
    "PENDING SUCCEED",
    "PENDING FAIL",
    "PENDING REVERSE",
}


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


@dataclass(frozen=True)
class MuteSettlement(Settlement):
    """Moves payments and tells nobody."""

    async def write(self, tx: Transaction, payment: Payment, transition: Transition | None) -> Payment:
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


def with_forgetful_rows() -> StoreSystem:
    store = MemoryStore()
    store.transaction = replace(store.transaction, payments=ForgetfulRows(store.state))
    return on_memory(store)


DEFECTS = [
    *DomainSystem.__subclasses__(),
    with_mute_settlement,
    with_forgetful_rows,
]


@pytest.mark.parametrize("defective", DEFECTS, ids=lambda defect: defect.__name__)
def test_the_machine_notices_a_planted_defect(defective: Callable[[], PaymentSystem]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(payment_machine(defective), settings=HUNT)
