"""The attacks of the laboratory succeed where the cures are missing, so that their failure says something."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from lab.attack import attacks as known
from lab.attack import target
from lab.attack.run import Attack, attacks
from lab.attack.target import Target
from tests.support.ports import free_port
from tests.support.processes import answers, environment, wait_until

pytestmark = pytest.mark.release
ATTACKS = attacks()
FILES = 256  # that the server may open


@pytest.fixture(scope="module")
def vulnerable() -> Iterator[Target]:
    port = free_port()
    command = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", sys.executable, "-m", "lab.attack.vulnerable"]
    with pytest.MonkeyPatch.context() as patch, subprocess.Popen([*command, str(port)], env=environment()) as process:
        for module in (known, target):
            patch.setattr(module, "PATIENCE", 3.0)
        try:
            origin = f"http://127.0.0.1:{port}"
            wait_until(lambda: answers(port, "/"))
            yield Target(origin, process.pid, "ssk_sand_0", front_origin=origin)
        finally:
            process.kill()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=list(ATTACKS))
def test_an_attack_succeeds_where_nothing_holds_it(vulnerable: Target, attack: Attack) -> None:
    wait_until(vulnerable.is_well)  # an attack before may have left it nothing to answer with
    finding = attack(vulnerable)
    assert finding.succeeded, finding
