"""The attacks of the laboratory succeed where the cures are missing, so that their failure says something."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from lab.attack import access, connections, run, target
from lab.attack.run import Attack, attacks
from lab.attack.target import AttackResult, Target
from tests.support.ports import free_port
from tests.support.processes import environment, wait_until

pytestmark = pytest.mark.release
ATTACKS = dict(attacks())
FILES = 256  # that the server may open


@pytest.fixture(scope="module")
def vulnerable() -> Iterator[Target]:
    port = free_port()
    command = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", sys.executable, "-m", "lab.attack.vulnerable"]
    with pytest.MonkeyPatch.context() as patch, subprocess.Popen([*command, str(port)], env=environment()) as process:
        for module in (access, connections, target):
            patch.setattr(module, "PATIENCE", 3.0)
        patch.setattr(connections, "SECONDS", 3)
        try:
            origin = f"http://127.0.0.1:{port}"
            wait_until(lambda: _answers(origin))
            yield Target(origin, process.pid, "ssk_sand_0", "a.b.c", "biz_0", dev_origin=origin, router_origin=origin)
        finally:
            process.kill()


def _answers(origin: str) -> bool:
    try:
        return httpx.get(origin, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=list(ATTACKS))
def test_an_attack_succeeds_where_nothing_holds_it(vulnerable: Target, attack: Attack) -> None:
    wait_until(vulnerable.is_well)  # an attack before may have left it nothing to answer with
    finding = attack(vulnerable)
    assert finding.succeeded, finding


def test_no_attack_has_gone() -> None:
    assert len(ATTACKS) >= 18


def test_one_success_fails_the_run(
    vulnerable: Target, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "the_product", lambda: contextlib.nullcontext(vulnerable))
    assert run.main(["--only", "metrics"]) == 1
    printed = capsys.readouterr().out
    assert "access.metrics_without_a_token" in printed
    assert "BROKEN" in printed
    assert "0 of 1 hold" in printed


def test_an_attack_that_breaks_or_leaves_nobody_answered_is_not_held() -> None:
    gone = Target("http://127.0.0.1:9", 0, "", "", "", "", "")

    def breaks(_: Target) -> AttackResult:
        raise ValueError("a defect of the attack")

    assert run.tried(gone, breaks).succeeded
    assert run.tried(gone, lambda _: AttackResult("", "", succeeded=False)).succeeded
