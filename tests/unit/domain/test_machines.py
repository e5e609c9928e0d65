"""Every (state, trigger) pair of every machine, against tables written out by hand from the requirements."""

import itertools
from typing import Any

import pytest

from payagg.domain.anomaly import ANOMALY
from payagg.domain.api_key import API_KEY
from payagg.domain.business import KYC, KycStatus, move_kyc
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import GATEWAY
from payagg.domain.machine import Machine
from payagg.domain.payment import PAYMENT
from tests.support.refusals import refusal_of

# Rows are states, columns triggers; a lower-case word stands for the refusal's code below.
EXPECTED = {
    "payment": """
                  PROCESS    SUCCEED  FAIL    REVERSE   EXPIRE
        INITIATED PENDING    SUCCESS  FAILED  REVERSED  FAILED
        PENDING   PENDING    SUCCESS  FAILED  REVERSED  FAILED
        SUCCESS   processed  final    final   final     final
        FAILED    processed  final    final   final     final
        REVERSED  processed  final    final   final     final
    """,
    "gateway": """
                  ENABLE   DISABLE    END_DRAIN   DELETE
        ACTIVE    enabled  DRAINING   not_active  in_use
        DRAINING  ACTIVE   not_active DISABLED    in_use
        DISABLED  ACTIVE   not_active not_active  DELETED
        DELETED   enabled  not_active not_active  in_use
    """,
    "api_key": """
                 REVOKE
        ACTIVE   REVOKED
        REVOKED  revoked
    """,
    "kyc": """
                       SUBMIT   START_REVIEW  APPROVE   REJECT
        NOT_SUBMITTED  PENDING  no            no        no
        PENDING        no       UNDER_REVIEW  no        no
        UNDER_REVIEW   no       no            APPROVED  REJECTED
        APPROVED       no       UNDER_REVIEW  no        no
        REJECTED       PENDING  no            no        no
    """,
    "anomaly": """
                       ACKNOWLEDGE   CLOSE
        OPEN           ACKNOWLEDGED  CLOSED
        ACKNOWLEDGED   not_open      CLOSED
        CLOSED         not_open      closed
    """,
}
CODES = {
    "processed": ErrorCode.PAYMENT_ALREADY_PROCESSED,
    "final": ErrorCode.PAYMENT_ALREADY_FINAL,
    "enabled": ErrorCode.GATEWAY_ALREADY_ENABLED,
    "not_active": ErrorCode.GATEWAY_NOT_ACTIVE,
    "in_use": ErrorCode.GATEWAY_IN_USE,
    "revoked": ErrorCode.API_KEY_ALREADY_REVOKED,
    "not_open": ErrorCode.ANOMALY_NOT_OPEN,
    "closed": ErrorCode.ANOMALY_ALREADY_CLOSED,
    "no": ErrorCode.VALIDATION_ERROR,
}
MACHINES: dict[str, Machine[Any, Any]] = {one.name: one for one in (PAYMENT, GATEWAY, API_KEY, KYC, ANOMALY)}


def cells(name: str) -> list[tuple[str, str, str]]:
    head, *rows = (line.split() for line in EXPECTED[name].strip().splitlines())
    return [(row[0], trigger, cell) for row in rows for trigger, cell in zip(head, row[1:], strict=True)]


@pytest.mark.rule("payments.1", "gateways.8")
@pytest.mark.parametrize(
    ("name", "state", "trigger", "cell"), [(name, *cell) for name in EXPECTED for cell in cells(name)]
)
def test_each_pair_leads_where_the_table_says_or_is_refused_with_its_code(
    name: str, state: str, trigger: str, cell: str
) -> None:
    machine = MACHINES[name]
    move = machine.states[state], machine.triggers[trigger]
    if cell in CODES:
        assert refusal_of(machine.next, *move).code is CODES[cell]
    else:
        assert machine.next(*move).value == cell


@pytest.mark.parametrize(
    ("name", "initial", "final"),
    [
        ("payment", "INITIATED", {"SUCCESS", "FAILED", "REVERSED"}),
        ("gateway", "DISABLED", {"DELETED"}),
        ("api_key", "ACTIVE", {"REVOKED"}),
        ("kyc", "NOT_SUBMITTED", set()),
        ("anomaly", "OPEN", {"CLOSED"}),
    ],
)
def test_each_machine_begins_and_ends_where_the_interface_says(name: str, initial: str, final: set[str]) -> None:
    machine = MACHINES[name]
    pairs = sorted((state.name, trigger.name) for state in machine.states for trigger in machine.triggers)
    assert sorted((state, trigger) for state, trigger, _ in cells(name)) == pairs, "the table has every pair once"
    assert machine.initial.value == initial
    assert {state.value for state in machine.final} == final


def test_the_pairs_for_the_database_leave_out_staying_put() -> None:
    final = ["SUCCESS", "FAILED", "REVERSED"]
    moves = [("INITIATED", end) for end in ("PENDING", *final)] + [("PENDING", end) for end in final]
    assert PAYMENT.pairs == sorted(moves)


@pytest.mark.rule("keys.5")
@pytest.mark.parametrize(("current", "wanted"), list(itertools.product(KycStatus, KycStatus)))
def test_an_operator_moves_kyc_only_along_the_machine(current: KycStatus, wanted: KycStatus) -> None:
    moves = {(state, cell) for state, _, cell in cells("kyc")}
    if (current.value, wanted.value) in moves or current is wanted:
        assert move_kyc(current, wanted) is wanted
        return
    refused = refusal_of(move_kyc, current, wanted)
    assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "kycStatus")
