"""The receiver kit finds nothing wrong with a good handler, and what is wrong with each of the others."""

from functools import partial

import pytest
from payagg_testing.conformance.receiver import ReceiverFinding, check_receiver

from tests.support.harness import harness
from tests.support.webhook_handlers import BROKEN_RECEIVERS, NEW_SECRET, SECRET, GoodReceiver, receiving


def findings_of(receiver: GoodReceiver) -> list[ReceiverFinding]:
    with receiving(receiver) as url:
        count = partial(getattr, receiver, "handled")
        return check_receiver(url, SECRET, new_secret=NEW_SECRET, count=count, settle_seconds=0.2)


def test_a_good_receiver_passes() -> None:
    findings = findings_of(GoodReceiver())
    assert [finding for finding in findings if finding.fault] == []
    assert len(findings) > 25


@pytest.mark.parametrize("broken", BROKEN_RECEIVERS, ids=lambda broken: broken.__name__)
def test_a_broken_receiver_is_caught(broken: type[GoodReceiver]) -> None:
    assert [finding for finding in findings_of(broken()) if finding.fault], broken.__doc__


def test_the_command_tells_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    with receiving(GoodReceiver()) as url:
        status, told = harness(capsys, "receiver", "--url", url, "--secret", SECRET, "--count-url", url)
        # Wrong usage is none of the receiver's faults.
        for wrong in (("--secret", "x"), ("--secret", SECRET, "--new-secret", "x"), ()):
            code, why = harness(capsys, "receiver", "--url", url, *wrong)
            assert (code, "secret" in why) == (2, True), wrong
    assert (status, "ok      a stranger's signature" in told) == (0, True)
