"""The machines without a URL: over the domain's rules alone, over the in-memory store, over what a function opens."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from payagg_testing import ConformanceTarget, Effort, domain_target, run_machine
from payagg_testing.command import main
from payagg_testing.conformance.api_keys import REVOKED_LISTED, ApiKeyConformance
from payagg_testing.conformance.assumptions import PUBLIC, SECRET, STATUS, assumption_of
from payagg_testing.conformance.expectation import Expected
from payagg_testing.conformance.run import MACHINES
from payagg_testing.conformance.service import Driver, ServiceAnswer, ServiceCall
from payagg_testing.conformance.statements import CODES, NEVER, PAYER, ROUTES, SAYS, statements_of

from payagg.adapters.memory import MemoryStore
from payagg.application.ports.accounts import KeyHolder
from payagg.domain.checks import with_changes
from payagg.domain.errors import ErrorCode
from payagg.domain.payment import Payment, Status
from tests.rules import sentences
from tests.support.in_process import InProcess
from tests.support.rounds import scaled

OF_THE_DOMAIN = ("payments", "idempotency", "api-keys", "businesses", "gateways", "webhooks")
BRIEF = Effort(histories=scaled(20), actions=30, seed=1)  # the same in each run


@pytest.mark.parametrize("name", OF_THE_DOMAIN)
def test_no_history_breaks_the_domains_rules(name: str) -> None:
    verdict = run_machine(name, domain_target(), BRIEF)
    assert (verdict.violation, verdict.skipped) == (None, None)
    assert verdict.requests > 150


class TurnsReversalsIntoSuccesses(MemoryStore):
    async def find_payment(self, reference: str, cached: KeyHolder | None = None) -> Payment | None:
        found = await super().find_payment(reference, cached)
        if found is None or found.status is not Status.REVERSED:
            return found
        return with_changes(found, status=Status.SUCCESS)


def test_by_url_the_model_of_a_payment_finds_a_final_status_that_changes() -> None:
    target = InProcess(TurnsReversalsIntoSuccesses()).target()
    verdict = run_machine("payments", target, Effort(histories=100, actions=20, seed=1, shrinks=False))
    target.close()
    assert verdict.violation is not None
    assert verdict.violation.fault == 'status is "SUCCESS"'


class Altered:
    """The domain's service, whose answers `alter` changes."""

    def __init__(self, service: Driver, alter: Callable[[ServiceCall, ServiceAnswer], ServiceAnswer]) -> None:
        self._service, self._alter = service, alter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def send(self, call: ServiceCall) -> ServiceAnswer:
        return self._alter(call, self._service.send(call))


def altered(alter: Callable[[ServiceCall, ServiceAnswer], ServiceAnswer]) -> ConformanceTarget:
    target = domain_target()
    return replace(target, service=cast(Driver, Altered(target.service, alter)))


def test_statements_are_those_of_our_rules_and_each_is_tried_or_has_a_reason() -> None:
    says = {number: rule["says"] for number, rule in sentences().items()}
    assert {one: words for one, words in SAYS.items() if says[one] != words} == {}
    tried = {"access.1"}.union(*map(statements_of, MACHINES.values()))
    assert (SAYS.keys() - tried, tried & NEVER.keys()) == (SAYS.keys() & NEVER.keys(), set())
    assert NEVER.keys() <= {*SAYS, *ROUTES, *CODES}
    assert set(CODES) <= {code.name for code in ErrorCode}


@pytest.mark.parametrize("over", ["domain", "memory", f"{__name__}:a_target_of_ours"])
def test_the_command_needs_one_argument_instead_of_a_url(over: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--over", over, "--histories", "2", "--actions", "8"])
    told = capsys.readouterr().out
    assert ended.value.code == 0, told
    assert told.count("  keeps ") == (len(MACHINES) if over == "memory" else len(OF_THE_DOMAIN))


@pytest.mark.parametrize(
    ("call", "data", "answer", "fault", "assumption"),
    [
        (ServiceCall("GET", "/payments/R"), {"status": "PENDING"}, {}, 'status is "INITIATED"', STATUS),
        (ServiceCall("GET", "/payments/R"), {"status": "SUCCESS"}, {}, 'status is "INITIATED"', None),
        (ServiceCall("GET", "/public/payments/R"), {}, {}, 'amount is "absent"', PUBLIC),
        (ServiceCall("GET", "/public/payments/R"), {}, {}, "amount is 1", None),
        (ServiceCall("GET", "/payments/R"), {}, {}, 'amount is "absent"', None),
        (ServiceCall("POST", "/merchant/businesses/b/webhooks"), {}, {}, 'signingSecret is "absent"', SECRET),
    ],
)
def test_a_fault_is_of_the_interface_or_of_an_assumption(
    call: ServiceCall, data: dict[str, Any], answer: dict[str, Any], fault: str, assumption: str | None
) -> None:
    came = ServiceAnswer(200, {"success": True, "data": answer}, {}, "")
    assert assumption_of(call, Expected((200,), data=data), came, fault) == assumption


LISTED = len(SAYS) + len(ROUTES) + len(CODES)


def cases_of(junit: Path, part: str) -> list[ElementTree.Element]:
    return ElementTree.parse(junit).findall(f"testcase[@classname='{part}']")


def without_payers() -> ConformanceTarget:
    """A service without the public routes of payments."""

    def missing(call: ServiceCall, answer: ServiceAnswer) -> ServiceAnswer:
        assert not call.path.startswith("/public/payments/"), call.path
        return answer

    return altered(missing)


def test_what_is_not_built_is_left_out_and_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    over, junit = f"{__name__}:without_payers", tmp_path / "verdicts.xml"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--over", over, "--histories", "20", "--without", "payer", "--junit", str(junit)])
    told = capsys.readouterr().out
    assert (ended.value.code, f"checkout.3 {SAYS['checkout.3']}: it needs {PAYER.words}" in told) == (0, True)
    statements = {case.get("name"): case for case in cases_of(junit, "statements")}
    assert [len(statements), statements["access.1 every answer is an envelope"].find("skipped")] == [LISTED, None]
    assert statements["PAYMENT_EXPIRED"].find("skipped") is not None
    cases = cases_of(junit, "conformance")
    assert [case.get("name") for case in cases] == list(MACHINES)
    assert {str(case.get("name")) for case in cases if case.find("skipped") is not None} >= {"settlement"}


def a_target_of_ours() -> ConformanceTarget:
    return domain_target()


def keys_of(target: ConformanceTarget) -> ApiKeyConformance:
    target.with_keys()
    facts = {"target": target, "steps_taken": [0], "tried": set(), "gone": set(), "told": staticmethod(lambda _: None)}
    return type("Keys", (ApiKeyConformance,), facts | {"known": set(), "last": []})()  # type: ignore[no-any-return]


def test_a_key_that_was_refused_a_second_revocation_was_revoked_when_it_was() -> None:
    keys = keys_of(domain_target())
    for number in range(REVOKED_LISTED + 1):
        keys._generate(0, "SANDBOX", "Server")
        keys.revoke(number)
        keys.revoke(0)
    assert [keys.keys.index(key) for key in keys.revoked] == list(range(REVOKED_LISTED + 1))
