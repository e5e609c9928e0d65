"""The payment machine on the pure domain and on the memory store, and proof that it notices defects of what it drives;
lab/defects shows it those of the product."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from payagg_testing.clocks import SeededEntropy
from payagg_testing.state_machine.domain import DomainSystem
from payagg_testing.state_machine.machine import payment_machine
from payagg_testing.state_machine.system import Facts, PaymentSystem

from payagg.adapters.memory import MemoryStore
from payagg.adapters.memory.payments import MemoryPayments
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.store import Transaction
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.attempt import Attempt
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.payment import EXPIRED_REASON, Payment, Transition
from payagg.domain.values import Environment
from payagg.domain.webhook import EventType
from tests.support.rounds import scaled
from tests.support.state_machine.histories import HISTORIES, Told, tell
from tests.support.state_machine.store_system import StoreSystem

BRIEF = settings(max_examples=scaled(30), stateful_step_count=50, deadline=None, database=None)
# Planted defects need not be made small, only found; the same search each time keeps the test from flickering.
HUNT = settings(BRIEF, max_examples=1000, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)


def on_memory(store: MemoryStore | None = None) -> StoreSystem:
    runner = asyncio.Runner()
    return StoreSystem(runner.run, store or MemoryStore(), SeededEntropy(), closing=runner.close)


@pytest.mark.parametrize("make_system", [DomainSystem, on_memory])
def test_no_history_breaks_a_promise(make_system: Callable[[], PaymentSystem]) -> None:
    run_state_machine_as_test(payment_machine(make_system), settings=BRIEF)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_a_known_history_goes_as_foreseen_on_the_memory_store(history: Callable[[Told], None]) -> None:
    tell(payment_machine(on_memory), history)


# Refusals, what reports do, what is told, and every move, anomaly and notice that there is.
EVERYTHING = {
    *("DUPLICATE_PAYMENT", "NO_GATEWAY_AVAILABLE", "PAYMENT_ALREADY_FINAL", "PAYMENT_ALREADY_PROCESSED"),
    *("PAYMENT_AMOUNT_MISMATCH", "PAYMENT_EXPIRED", "PAYMENT_NOT_FOUND", "INVALID_WEBHOOK_SIGNATURE", "NOT_FOUND"),
    *("GATEWAY_ALREADY_ENABLED", "GATEWAY_IN_USE", "GATEWAY_NOT_ACTIVE", "GATEWAY_NOT_AVAILABLE"),
    *("GATEWAY_SLUG_EXISTS", "MOVED", "UNCHANGED", "ANOMALY", "MISMATCH", "DECLINED"),
    *("told while it is open", "a final payment is verified", "what was paid is asked about"),
    *("MOVED through a deleted gateway", "payment.attention", "payment.late_success", "payment.refunded"),
    *("payment.disputed", "PARTIAL_REFUND", "LATE_SUCCESS", "SECOND_CHARGE", "LATE_FAILURE", "LATE_REVERSAL"),
    *("DISPUTE", "NO_EVIDENCE", "WRONG_ENVIRONMENT", "WRONG_PROVIDER"),
    *(
        f"{start} {trigger}"
        for start in ("INITIATED", "PENDING")
        for trigger in ("SUCCEED", "FAIL", "REVERSE", "EXPIRE")
    ),
    "INITIATED PROCESS",
}


def test_the_known_histories_meet_every_refusal_move_and_anomaly() -> None:
    machine = payment_machine(DomainSystem)
    tell(machine)
    assert set(machine.seen) == EVERYTHING


class ExpiresAnInstantLate(DomainSystem):
    def facts(self, reference: str) -> Facts:
        seen = self.payments[reference].as_of(self.now() - timedelta(microseconds=1))
        return replace(super().facts(reference), payment=seen)


class HandsOffTwice(DomainSystem):
    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        earlier, self.attempts[reference] = self.attempts[reference], []
        try:
            return super().process(reference, gateway, card, refused)
        finally:
            self.attempts[reference] = earlier + self.attempts[reference]


class ForgetsIdempotencyKeys(DomainSystem):
    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        self.originals.clear()
        return super().initiate(amount, environment, key)


class DropsLateNews(DomainSystem):
    def keep(self, reference: str, kind: AnomalyKind, details: Mapping[str, Any]) -> None:
        if not kind.value.startswith("LATE"):
            super().keep(reference, kind, details)


class SkipsASequenceNumber(DomainSystem):
    def write(self, payment: Payment, transition: Transition | None) -> None:
        if transition is not None and transition.sequence > 1:
            transition = replace(transition, sequence=transition.sequence + 1)
        super().write(payment, transition)


class WritesBeforeItRefuses(DomainSystem):
    def simulate(self, reference: str, outcome: str) -> None:
        payment = self.payments[reference]
        if payment.failure_reason == EXPIRED_REASON:
            self.payments[reference] = replace(payment, updated_at=self.now() + timedelta(seconds=1))
        super().simulate(reference, outcome)


class WipesSecretsAtOnce(DomainSystem):
    def move_gateway(self, slug: str, move: str) -> None:
        super().move_gateway(slug, move)
        if move == "DELETE":
            self.keep_gateway(replace(self.newest(slug), credentials=None))


class ShowsDrainingGateways(DomainSystem):
    def offered(self, business_id: str) -> list[Gateway]:
        return [gateway for gateway in self.living() if gateway.status is not GatewayStatus.DISABLED]


class StopsAskingOnceDeleted(DomainSystem):
    def can_ask(self, attempt: Attempt) -> bool:
        account = self.account(attempt)
        return account is None or account.status is not GatewayStatus.DELETED


class OffersProvidersForTestPayments(DomainSystem):
    def options(self, reference: str) -> frozenset[tuple[str, bool]]:
        business = self.businesses[self.business_id]
        return super().options(reference) | {(one.slug, business.is_active) for one in self.offered(business.id)}


class TellsNothingKnownBeforeTheSuccess(DomainSystem):
    def notice(self, fact: Anomaly, payment: Payment) -> EventType | None:
        return super().notice(fact, payment) if fact is self.anomalies[payment.reference][-1] else None


class NumbersNoticesApart(DomainSystem):
    def tell(self, reference: str) -> None:
        before = self.payments[reference].sequence
        super().tell(reference)
        self.payments[reference] = replace(self.payments[reference], sequence=before)


class AsksAboutFinalPaymentsEachTime(DomainSystem):
    def is_spared(self, payment: Payment, attempt: Attempt) -> bool:
        return super().is_spared(payment, replace(attempt, last_ask_at=None))


class ProvesNoEventOfReplacedAccounts(DomainSystem):
    def rotate(self, gateway: Gateway, account: str) -> Gateway:
        rotated = super().rotate(gateway, account)
        self.replaced.clear()
        return rotated


@dataclass(frozen=True)
class MuteSettlement(Settlement):
    """Moves payments and tells nobody."""

    async def write(
        self, tx: Transaction, payment: Payment, transition: Transition | None, *_: object, **__: object
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
    services, mute = system.services, MuteSettlement(system.store, system.clock, system.entropy)
    checkout, payments = replace(services.checkout, settlement=mute), replace(services.payments, settlement=mute)
    system.services = replace(services, settlement=mute, checkout=checkout, payments=payments)
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
        tell(payment_machine(defective))


@pytest.mark.parametrize(
    "defective", [HandsOffTwice, DropsLateNews, with_forgetful_rows], ids=lambda defect: defect.__name__
)
def test_the_search_finds_a_planted_defect_by_itself(defective: Callable[[], PaymentSystem]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(payment_machine(defective), settings=HUNT)
