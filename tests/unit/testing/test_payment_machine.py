"""The payment machine on the pure domain and on the memory store; lab/defects shows it defects of the product."""

import asyncio
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from payagg_testing.clocks import SeededEntropy
from payagg_testing.memory import MemoryStore
from payagg_testing.state_machine.domain import DomainSystem
from payagg_testing.state_machine.machine import payment_machine
from payagg_testing.state_machine.system import PaymentSystem

from tests.support.rounds import scaled
from tests.support.state_machine.histories import HISTORIES, RuleScript, tell
from tests.support.state_machine.store_system import StoreSystem

BRIEF = settings(max_examples=scaled(30), stateful_step_count=50, deadline=None, database=None)


def on_memory() -> StoreSystem:
    runner = asyncio.Runner()
    return StoreSystem(runner.run, MemoryStore(), SeededEntropy(), closing=runner.close)


@pytest.mark.parametrize("make_system", [DomainSystem, on_memory])
def test_no_history_breaks_a_promise(make_system: Callable[[], PaymentSystem]) -> None:
    run_state_machine_as_test(payment_machine(make_system), settings=BRIEF)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_a_known_history_goes_as_foreseen_on_the_memory_store(history: Callable[[RuleScript], None]) -> None:
    tell(payment_machine(on_memory), history)


# Refusals, what reports do, what is told, and every move, anomaly and notice that there is.
EVERYTHING = {
    *("DUPLICATE_PAYMENT", "NO_GATEWAY_AVAILABLE", "PAYMENT_ALREADY_FINAL", "PAYMENT_ALREADY_PROCESSED"),
    *("PAYMENT_AMOUNT_MISMATCH", "PAYMENT_EXPIRED", "PAYMENT_NOT_FOUND", "INVALID_WEBHOOK_SIGNATURE", "NOT_FOUND"),
    *("GATEWAY_ALREADY_ENABLED", "GATEWAY_IN_USE", "GATEWAY_NOT_ACTIVE", "GATEWAY_NOT_AVAILABLE"),
    *("GATEWAY_SLUG_EXISTS", "MOVED", "UNCHANGED", "ANOMALY", "MISMATCH", "DECLINED"),
    *("told while it is open", "a final payment is verified", "what was paid is asked about"),
    "what was paid and never handed off is asked about",
    *("MOVED through a deleted gateway", "payment.attention", "payment.late_success", "payment.refunded"),
    *("payment.disputed", "PARTIAL_REFUND", "LATE_SUCCESS", "SECOND_CHARGE", "LATE_FAILURE", "LATE_REVERSAL"),
    *("DISPUTE", "NO_EVIDENCE", "WRONG_ENVIRONMENT", "WRONG_PROVIDER"),
    *map(" ".join, product(("INITIATED", "PENDING"), ("SUCCEED", "FAIL", "REVERSE", "EXPIRE"))),
    "INITIATED PROCESS",
}


def test_the_known_histories_meet_every_refusal_move_and_anomaly() -> None:
    machine = payment_machine(DomainSystem)
    tell(machine)
    assert set(machine.seen) == EVERYTHING
