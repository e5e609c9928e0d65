"""Who may end a payment by hand, when, and as what: pure rules."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from payagg_testing.builders import NOW, REFERENCE, SECOND, a_payment

from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.errors import ErrorCode
from payagg.domain.payment import OUTCOMES, Payment, Status, Trigger
from payagg.domain.resolution import CONFIRM_WITHIN, Resolution, ask, check_outcome, confirm, is_resolvable
from tests.support.refusals import refusal_of

PENDING = a_payment(Status.PENDING)
END = PENDING.expires_at
FACT = Anomaly("anm_1", REFERENCE, AnomalyKind.NO_EVIDENCE, "reconciler", {}, NOW)
CLOSED = FACT.close("admin:ada", "Seen.", NOW)
ELSEWHERE = replace(FACT, reference="PAY-20250131-OTHER1")
ASKED = Resolution("res_1", REFERENCE, "Account closed.", "Case 4711.", "admin:ada", END)


def asked(payment: Payment = PENDING, latest: Resolution | None = None, **more: object) -> Resolution:
    facts = {"id": "res_2", "reason": "Account closed.", "evidence": "Case 4711.", "by": "admin:ada", "now": END}
    known = more.pop("known", [FACT])
    return ask(payment, known, latest, **{**facts, **more})  # type: ignore[arg-type]


@pytest.mark.rule("description.12")
@pytest.mark.parametrize("outcome", [*OUTCOMES, *(status.value for status in Status), "failed", "", " FAILED"])
def test_no_other_end_than_failed_is_made_by_hand(outcome: str) -> None:
    if outcome == "FAILED":
        check_outcome(outcome)
        return
    refused = refusal_of(check_outcome, outcome)
    assert (refused.code, refused.field) == (ErrorCode.VALIDATION_ERROR, "outcome")
    assert "FAILED" in refused.message


@pytest.mark.parametrize(
    ("payment", "known", "now", "code"),
    [
        (PENDING, [FACT], END, None),
        (PENDING, [FACT.acknowledge("admin:ada", NOW)], END, None),
        (PENDING, [FACT], END - SECOND, ErrorCode.RESOLUTION_NOT_ALLOWED),
        (PENDING, [], END, ErrorCode.RESOLUTION_NOT_ALLOWED),
        (PENDING, [CLOSED], END, None),
        (PENDING, [ELSEWHERE], END, ErrorCode.RESOLUTION_NOT_ALLOWED),
        (a_payment(), [FACT], END - SECOND, ErrorCode.RESOLUTION_NOT_ALLOWED),
        (a_payment(), [FACT], END, ErrorCode.PAYMENT_ALREADY_FINAL),
        *((a_payment(one), [FACT], END, ErrorCode.PAYMENT_ALREADY_FINAL) for one in list(Status)[2:]),
    ],
)
def test_only_what_is_over_open_and_has_a_fact_is_ended_by_hand(
    payment: Payment, known: list[Anomaly], now: object, code: ErrorCode | None
) -> None:
    assert is_resolvable(payment, known, now) is (code is None)  # type: ignore[arg-type]
    if code is None:
        assert asked(payment, known=known, now=now).reference == REFERENCE
        return
    assert refusal_of(asked, payment, known=known, now=now).code is code
    assert refusal_of(confirm, payment, known, ASKED, by="admin:ben", now=now).code is code


def test_one_request_waits_at_a_time_and_for_a_day() -> None:
    over = END + CONFIRM_WITHIN
    for now in (END, over - SECOND):
        assert refusal_of(asked, latest=ASKED, now=now).code is ErrorCode.RESOLUTION_ALREADY_REQUESTED
    assert asked(latest=ASKED, now=over).id == "res_2"


@pytest.mark.rule("description.12")
def test_only_another_administrator_confirms_and_within_a_day() -> None:
    def code(latest: Resolution | None, by: str, late: timedelta) -> str:
        return refusal_of(confirm, PENDING, [FACT], latest, by=by, now=END + late).code.name

    assert code(ASKED, "admin:ada", SECOND) == "SECOND_ADMINISTRATOR_REQUIRED"
    confirmed = replace(ASKED, confirmed_by="admin:eve", confirmed_at=END)
    codes = [code(ASKED, by, CONFIRM_WITHIN) for by in ("admin:ada", "admin:ben")]  # too late
    codes += [code(latest, "admin:ben", SECOND) for latest in (None, confirmed)]
    assert codes == ["RESOLUTION_NOT_REQUESTED"] * 4


def test_the_longest_names_of_two_administrators_fit_a_transition() -> None:
    by = [f"admin:{letter * 255}" for letter in "ab"]
    done = confirm(PENDING, [FACT], asked(by=by[0]), by=by[1], now=END)
    _, transition = PENDING.move(Trigger.FAIL, END, actor=done.actor)
    assert transition is not None
    assert transition.actor == f"{by[0]}, confirmed by {by[1]}"


def test_a_request_says_why_and_what_shows_it() -> None:
    for field, text in product(("reason", "evidence"), ("", "  \n", "a\x00b")):
        assert refusal_of(asked, **{field: text}).field == field
