"""The machines without a URL: over the domain's rules alone, over the in-memory store, over what a function opens."""

import pytest
from payagg_testing import AccessError, ConformanceTarget, Effort, domain_target, open_target, run_machine
from payagg_testing.command import main
from payagg_testing.conformance.run import MACHINES

from payagg.adapters.memory import MemoryStore
from payagg.application.ports.accounts import KeyHolder
from payagg.domain.checks import revised
from payagg.domain.payment import Payment, Status
from tests.support.in_process import InProcess
from tests.support.rounds import scaled

OF_THE_DOMAIN = ("payments", "idempotency", "api-keys", "businesses", "gateways", "webhooks")
BRIEF = Effort(histories=scaled(20), actions=30)


@pytest.mark.parametrize("name", OF_THE_DOMAIN)
def test_no_history_breaks_the_domains_rules(name: str) -> None:
    verdict = run_machine(name, domain_target(), BRIEF)
    assert (verdict.violation, verdict.skipped) == (None, None)
    assert verdict.requests > 150


class TurnsReversalsIntoSuccesses(MemoryStore):
    async def find_payment(self, reference: str, remembered: KeyHolder | None = None) -> Payment | None:
        found = await super().find_payment(reference, remembered)
        if found is None or found.status is not Status.REVERSED:
            return found
        return revised(found, status=Status.SUCCESS)


def test_by_url_the_model_of_a_payment_finds_a_final_status_that_changes() -> None:
    target = InProcess(TurnsReversalsIntoSuccesses()).target()
    verdict = run_machine("payments", target, Effort(histories=100, actions=20, seed=1, shrinks=False))
    target.close()
    assert verdict.violation is not None
    assert verdict.violation.fault == 'status is "SUCCESS"'


@pytest.mark.parametrize("name", ["payments", "idempotency", "businesses"])
def test_a_verdict_says_that_live_was_not_tried(name: str) -> None:
    target = InProcess(MemoryStore()).target()  # where no gateway takes LIVE payments
    verdict = run_machine(name, target, BRIEF)
    target.close()
    assert verdict.words == "keeps the interface; LIVE WAS NOT TRIED: no gateway takes its payments"
    assert run_machine(name, domain_target(), BRIEF).words == "keeps the interface"


def test_what_the_domain_cannot_answer_is_said() -> None:
    target = domain_target()
    skipped = {name: run_machine(name, target).skipped for name in MACHINES if name not in OF_THE_DOMAIN}
    assert skipped.keys() == target.left_out.keys()
    assert all(skipped.values())


@pytest.mark.parametrize("over", ["domain", "memory", f"{__name__}:a_target_of_ours"])
def test_the_command_needs_one_argument_instead_of_a_url(over: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--over", over, "--histories", "2", "--actions", "8"])
    told = capsys.readouterr().out
    assert ended.value.code == 0, told
    assert told.count("keeps the interface") == (len(MACHINES) if over == "memory" else len(OF_THE_DOMAIN))


def a_target_of_ours() -> ConformanceTarget:
    return domain_target()


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ("nonsense", "none of `domain`, `memory`"),
        ("no_such_module:target", "no module no_such_module"),
        (f"{__name__}:no_such_target", "has no no_such_target"),
        ("builtins:dict", "gave no ConformanceTarget"),
        ("postgresql://127.0.0.1:9/nobody", "database"),
    ],
)
def test_what_does_not_open_is_one_line(over: str, words: str) -> None:
    with pytest.raises(AccessError, match=words):
        open_target(over)


def test_a_url_and_a_store_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--over", "domain", "--url", "http://127.0.0.1:9/api/v1"])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
