"""The machines without a URL: over the in-memory store, and over what a function opens."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
import structlog
from payagg_testing import (
    AccessError,
    ConformanceTarget,
    Effort,
    open_target,
    run_machine,
)
from payagg_testing.conformance import assumptions
from payagg_testing.conformance.api_keys import REVOKED_LISTED, ApiKeyConformance
from payagg_testing.conformance.expectation import Expected
from payagg_testing.conformance.run import MACHINES, MachineVerdict, coverage
from payagg_testing.conformance.service import Driver, ServiceAnswer, ServiceCall
from payagg_testing.conformance.statements import CODES, LIVE, NEVER, ROUTES, SAYS, statements_of
from payagg_testing.state_machine.model import CARDS

from payagg.domain.errors import ErrorCode
from tests.rules import sentences
from tests.support.harness import harness
from tests.support.in_process import target as in_process
from tests.support.rounds import scaled

BRIEF = Effort(histories=scaled(20), actions=30, seed=1)  # the same in each run
Alter = Callable[[ServiceCall, ServiceAnswer], ServiceAnswer]


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A target in this process hushes its logs until it is closed, which nobody does here."""
    logs = structlog.get_config()
    yield
    structlog.configure(**logs)


class Altered:
    """A service whose answers `alter` changes."""

    def __init__(self, service: Driver, alter: Alter) -> None:
        self._service, self._alter = service, alter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def send(self, call: ServiceCall) -> ServiceAnswer:
        return self._alter(call, self._service.send(call))


def altered(alter: Alter, target: ConformanceTarget | None = None) -> ConformanceTarget:
    """The product over the in-memory store by default."""
    target = target or in_process()
    return replace(target, service=cast(Driver, Altered(target.service, alter)))


def refused(status: int, code: str) -> ServiceAnswer:
    return ServiceAnswer(status, {"success": False, "error": {"code": code, "message": "No."}}, {}, "")


def no_live_gateway(call: ServiceCall, answer: ServiceAnswer) -> ServiceAnswer:
    is_live = call.path == "/payments/initiate" and answer.data and answer.data["environment"] == "LIVE"
    return refused(503, "NO_GATEWAY_AVAILABLE") if is_live else answer


@pytest.mark.parametrize("name", ["payments", "businesses"])
def test_a_verdict_says_that_live_was_not_tried(name: str) -> None:
    verdict, reason = run_machine(name, altered(no_live_gateway), BRIEF), f"it needs {LIVE.words}"
    of_live = {one for one, needs in statements_of(MACHINES[name]).items() if LIVE in needs}
    assert {one for one, why in verdict.not_tried.items() if why == reason} == of_live != set()
    assert verdict.words.startswith("keeps what was tried; ")
    assert reason not in run_machine(name, in_process(), BRIEF).not_tried.values()


def test_statements_are_those_of_our_rules_and_each_is_tried_or_has_a_reason() -> None:
    says = {number: rule["says"] for number, rule in sentences().items()}
    assert {one: words for one, words in SAYS.items() if says[one] != words} == {}
    tried = {"access.1"}.union(*map(statements_of, MACHINES.values()))
    assert (SAYS.keys() - tried, tried & NEVER.keys()) == (SAYS.keys() & NEVER.keys(), set())
    assert NEVER.keys() <= {*SAYS, *ROUTES, *CODES}
    assert set(CODES) <= {code.name for code in ErrorCode}


def test_what_nobody_tried_is_listed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--over", "memory", "--machine", "payments", "--histories", "2", "--actions", "8"]
    status, told = harness(capsys, "run", *options, "--strict", "--matrix")
    assert status == 1
    assert "tried     access.1 every answer is an envelope" in told
    assert "NOT TRIED keys.1 a secret is shown once and kept as a hash: the machine api-keys was left out" in told
    assert "NOT TRIED limits.9 100 inbound webhooks" in told
    assert len(re.findall("^  (?:tried    |NOT TRIED) ", told, re.MULTILINE)) == len({*SAYS, *ROUTES, *CODES})
    _, told = harness(capsys, "run", "--over", "memory", "--histories", "1", "--actions", "1")
    assert told.count("  keeps ") == len(MACHINES), "each of them runs where none is named"


def test_why_a_machine_was_skipped_is_said_of_its_own_statements_alone() -> None:
    told = coverage([MachineVerdict(name, skipped="a token") for name in MACHINES])
    assert set(told.missing.values()) == {"no history came to it"}


@pytest.mark.rule("gateways.7")
@pytest.mark.parametrize("name", MACHINES)
def test_the_product_keeps_the_interface_and_every_statement_is_tried(name: str) -> None:
    """One seed makes other histories when other modules are loaded: Hypothesis draws constants of theirs, too."""
    not_tried = set(statements_of(MACHINES[name]))
    for seed in range(1, 6):
        verdict = run_machine(name, in_process(), Effort(histories=scaled(12), actions=30, seed=seed))
        assert (verdict.violation, verdict.skipped) == (None, None)
        not_tried &= verdict.not_tried.keys()
        if not not_tried:
            break
    assert not not_tried


def other_outcomes() -> ConformanceTarget:
    def alter(call: ServiceCall, answer: ServiceAnswer) -> ServiceAnswer:
        is_ours = call.path.endswith("/simulate") and answer.status == 200
        error = {"code": "VALIDATION_ERROR", "message": "paid, failed or reversed.", "field": "outcome"}
        return ServiceAnswer(400, {"success": False, "error": error}, {}, "") if is_ours else answer

    return altered(alter)


def test_the_words_of_a_service_for_an_outcome_or_a_card_are_sent() -> None:
    asked, target = set[str](), in_process()
    target.words = {"SUCCESS": "paid", "FAILED": "lost", "REVERSED": "back", **{card: f"own {card}" for card in CARDS}}

    def listen(call: ServiceCall, answer: ServiceAnswer) -> ServiceAnswer:
        asked.update(str(call.body[name]) for name in ("outcome", "cardNumber") if name in (call.body or {}))
        return answer

    run_machine("payments", altered(listen, target), Effort(30, 20, 1, kinds=3, shrinks=False))
    assert {"paid", *(word for word in asked if word.startswith("own "))} <= asked
    assert not asked & target.words.keys()


def test_what_the_interface_does_not_show_differs_and_breaks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    brief = ["--machine", "payments", "--histories", "20", "--actions", "8", "--seed", "1"]
    run = ["run", "--over", f"{__name__}:other_outcomes", *brief]
    for strict in (False, True):
        status, told = harness(capsys, *run, *["--strict"] * strict)
        assert status == int(strict)
        assert f"differs from payagg, which the interface allows: {assumptions.OUTCOME}" in told
    assert harness(capsys, "run", "--assumptions") == (0, "".join(f"{one}\n" for one in assumptions.ASSUMPTIONS))


REFUSED = {"error": {"code": assumptions.FORGED}}
READ, PAGE = ServiceCall("GET", "/payments/R"), ServiceCall("GET", "/public/payments/R")


@pytest.mark.parametrize(
    ("call", "data", "answer", "fault", "assumption"),
    [
        (READ, {"status": "PENDING"}, {}, 'status is "INITIATED"', "STATUS"),
        (READ, {"status": "SUCCESS"}, {}, 'status is "INITIATED"', None),
        (PAGE, {}, {}, 'amount is "absent"', "PUBLIC"),
        (PAGE, {}, {}, "amount is 1", None),
        (READ, {}, {}, 'amount is "absent"', None),
        (ServiceCall("POST", "/merchant/businesses/b/webhooks"), {}, {}, 'signingSecret is "absent"', "SECRET"),
        (ServiceCall("POST", "/payments/initiate", body={"amount": 5000.0}), {}, {}, "the status is 201", "WHOLE"),
        (ServiceCall("POST", "/payments/initiate", body={"amount": 5000.5}), {}, {}, "the status is 201", None),
        (ServiceCall("POST", "/webhooks/a/live", event="replaced secret"), {}, REFUSED, "400", "KEPT"),
        (ServiceCall("POST", "/webhooks/a/live", event="genuine"), {}, REFUSED, "400", None),
    ],
)
def test_a_fault_is_of_the_interface_or_of_an_assumption(
    call: ServiceCall, data: dict[str, Any], answer: dict[str, Any], fault: str, assumption: str | None
) -> None:
    came = ServiceAnswer(201 if fault.endswith("201") else 200, {"data": answer, **answer}, {}, "")
    found = assumptions.assumption_of(call, Expected((200,), data=data), came, fault)
    assert found == (assumption and getattr(assumptions, assumption))


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ("nonsense", "none of `memory`"),
        ("no_such_module:target", "no module no_such_module"),
        (f"{__name__}:no_such_target", "has no no_such_target"),
        ("builtins:dict", "gave no ConformanceTarget"),
        ("postgresql://127.0.0.1:9/nobody", "database"),
    ],
)
def test_what_does_not_open_is_one_line(over: str, words: str) -> None:
    with pytest.raises(AccessError, match=words):
        open_target(over)


def keys_of(target: ConformanceTarget) -> ApiKeyConformance:
    target.with_keys()
    facts = {"target": target, "steps_taken": [0], "tried": set(), "gone": set()}
    return type("Keys", (ApiKeyConformance,), facts | {"known": set(), "last": []})()  # type: ignore[no-any-return]


def test_a_key_that_was_refused_a_second_revocation_was_revoked_when_it_was() -> None:
    keys = keys_of(in_process())
    for number in range(REVOKED_LISTED + 1):
        keys._generate(0, "SANDBOX", "Server")
        keys.revoke(number)
        keys.revoke(0)
    assert [keys.keys.index(key) for key in keys.revoked] == list(range(REVOKED_LISTED + 1))
