"""The checker of linearizability: the search against all orders, and false answers planted in a good history."""

from collections.abc import Iterator
from itertools import permutations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.defects.run import DEFECTS
from lab.linear.check import Operation, longest_order
from lab.linear.faults import FAULTS, caught, planted
from lab.linear.load import refused_without_faults
from lab.linear.model import A, Order, Told

REFERENCE = "PAY-20260101-ABCDEF"


def register(state: int, call: Operation) -> Iterator[int]:
    if call.call == "write":
        yield call.asked
    elif call.told in (None, state):
        yield state


def test_a_read_after_an_answered_write_sees_it() -> None:
    write, stale = Operation("write", 0, 1, asked=7), Operation("read", 2, 3, told=0)
    assert longest_order([write, stale], 0, register) == (False, [write])
    during = Operation("read", 0.5, 3, told=0)
    assert longest_order([write, during], 0, register) == (True, [during, write])


@pytest.mark.parametrize("seen", [(0, 0), (0, 7), (7, 7)])
def test_a_write_without_an_answer_may_take_effect_late_or_never(seen: tuple[int, int]) -> None:
    lost = Operation("write", 0, asked=7)
    reads = [Operation("read", 2 * at, 2 * at + 1, told=told) for at, told in enumerate(seen, start=1)]
    assert longest_order([lost, *reads], 0, register)[0]
    assert not longest_order([lost, *reads, Operation("read", 8, 9, told=3)], 0, register)[0]


def test_a_write_without_an_answer_takes_effect_once() -> None:
    lost, write = Operation("write", 0, asked=7), Operation("write", 4, 5, asked=3)
    reads = [Operation("read", at, at + 1, told=told) for at, told in ((2, 7), (6, 3), (8, 7))]
    assert not longest_order([lost, write, *reads], 0, register)[0]


OPERATIONS = st.builds(
    lambda call, began, lasts, value: Operation(
        call, began, inf if call == "write" and lasts > 4 else began + lasts, value, value
    ),
    st.sampled_from(["read", "write"]),
    st.integers(0, 6),
    st.integers(1, 5),
    st.integers(0, 2),
)


def in_some_order(history: list[Operation]) -> bool:
    """By trying every order of every choice of the calls without an answer."""
    for order in (order for size in range(len(history) + 1) for order in permutations(history, size)):
        state, is_legal = 0, all(any(one is call for call in order) for one in history if one.is_known)
        for number, call in enumerate(order):
            is_legal = is_legal and not any(later.ended < call.began for later in order[number:])
            state, is_legal = next(register(state, call), state), is_legal and any(True for _ in register(state, call))
        if is_legal:
            return True
    return False


@given(st.lists(OPERATIONS, max_size=5))
def test_the_search_finds_what_trying_every_order_finds(history: list[Operation]) -> None:
    assert longest_order(history, 0, register)[0] == in_some_order(history)


def a_good_order() -> Order:
    """Handed to a provider, paid and told; a second order is simulated."""
    shown = Told("200", "PENDING", A, REFERENCE, 10_001)
    paid = shown._replace(status="SUCCESS")
    initiated = Told("201", "INITIATED", "", REFERENCE, 10_001)
    calls = [
        Operation("initiate", 0, asked=None),
        Operation("initiate", 1, 2, told=initiated._replace(code="200")),
        Operation("read", 1.5, 3, told=initiated._replace(code="200")),
        Operation("process", 2, 5, (A, ""), Told("200", "PENDING", A, REFERENCE, 0, "https://pay.example/1")),
        Operation("process", 3, asked=("sandbox", "FAILED")),
        Operation("public", 4, 6, told=shown),
        Operation("report", 6, asked="SUCCESS"),
        Operation("verify", 6, 8, told=paid._replace(gateway="")),
        Operation("simulate", 7, 9, "FAILED", Told("PAYMENT_ALREADY_FINAL")),
        Operation("read", 9, 10, told=paid),
        Operation("stranger", 9, 10, told=Told("PAYMENT_NOT_FOUND")),
        Operation("initiate", 9, 10, told=Told("DUPLICATE_PAYMENT")),
        Operation("process", 9, 10, (A, ""), Told("PAYMENT_ALREADY_PROCESSED")),
    ]
    return Order("order 1", 10_001, calls)


def a_simulated_order() -> Order:
    told = Told("200", "SUCCESS", "", REFERENCE, 10_001)
    created = Operation("initiate", 0, 1, told=Told("201", "INITIATED", "", REFERENCE, 10_001))
    return Order("order 2", 10_001, [created, Operation("simulate", 2, 3, "SUCCESS", told)])


def test_good_histories_are_explained() -> None:
    assert [a_good_order().wrong(), a_simulated_order().wrong()] == [[], []]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_false_answer_is_refused(fault: str) -> None:
    broken = planted(fault, a_good_order()) or planted(fault, a_simulated_order())
    assert broken is not None
    assert broken.wrong() != []


def test_ten_of_ten_planted_faults_are_caught() -> None:
    assert caught([a_good_order(), a_simulated_order()]) == list(FAULTS)
    assert len(FAULTS) == 10


def test_each_fault_is_also_planted_in_the_product() -> None:
    assert {fault for defect in DEFECTS for fault in defect.detectors.get("linear", ())} == set(FAULTS)


async def test_what_the_product_answers_without_faults_has_an_order() -> None:
    assert await refused_without_faults(100, seed=1, at_once=2) == []


def test_the_simulator_s_outcome_is_told_by_the_next_verify() -> None:
    created = Operation("initiate", 0, 1, told=Told("201", "INITIATED", "", REFERENCE, 10_001))
    sent = Operation("process", 2, 3, ("sandbox", "FAILED"), Told("200", "PENDING", "sandbox", REFERENCE))
    for status, is_good in (("FAILED", True), ("PENDING", False), ("SUCCESS", False)):
        verified = Operation("verify", 4, 5, told=Told("200", status, "", REFERENCE, 10_001))
        assert (Order("order 3", 10_001, [created, sent, verified]).wrong() == []) is is_good
    # One that joins another's check, which began before the hand-off, tells what is stored.
    other = Operation("verify", 2, 5, told=Told("200", "INITIATED", "", REFERENCE, 10_001))
    joined = Operation("verify", 3, 6, told=Told("200", "PENDING", "", REFERENCE, 10_001))
    assert Order("order 3", 10_001, [created, sent, other, joined]).wrong() == []
