"""`pytest -p payagg_testing.pytest_plugin`: the conformance machines as tests of your own.

A test that takes `payagg_check` and calls it runs once for each machine. `payagg_target` is what the options name: a
service by its URL, or with `--payagg-over` a store of payagg's in this process. A fixture of your own by
that name may hand in anything else.
"""

from collections.abc import Callable, Iterator

import pytest

from payagg_testing.conformance.access import OPTIONS, ServiceAccess
from payagg_testing.conformance.over import WORDS, open_target
from payagg_testing.conformance.run import MACHINES, Effort, run_machine
from payagg_testing.conformance.target import ConformanceTarget


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("payagg", "conformance of a payagg service")
    for name, more in OPTIONS.values():
        group.addoption(f"--payagg-{name}", **more)
    group.addoption("--payagg-over", help=f"no URL, in this process: {WORDS}")
    group.addoption("--payagg-histories", type=int, default=30, help="per machine (30)")
    group.addoption("--payagg-seed", type=int, help="repeat a search")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "payagg_machine" in metafunc.fixturenames:
        metafunc.parametrize("payagg_machine", list(MACHINES))


@pytest.fixture(scope="session")
def payagg_target(pytestconfig: pytest.Config) -> Iterator[ConformanceTarget]:
    """The service at `--payagg-url`, or what `--payagg-over` names; tests that need it are skipped without."""
    option = pytestconfig.getoption
    if option("--payagg-over") is not None:
        target = open_target(option("--payagg-over"))
    elif option("--payagg-url") is not None:
        target = ServiceAccess.of(lambda name: option(f"--payagg-{name}")).open_target()
    else:
        pytest.skip("no --payagg-url and no --payagg-over")
    yield target
    target.close()


@pytest.fixture
def payagg_check(
    payagg_machine: str, payagg_target: ConformanceTarget, pytestconfig: pytest.Config
) -> Callable[[], None]:
    """Runs one machine: fails with the story of a counterexample, and skips where the target lacks what the machine
    needs."""
    option = pytestconfig.getoption
    effort = Effort(histories=option("--payagg-histories"), seed=option("--payagg-seed"))

    def check() -> None:
        verdict = run_machine(payagg_machine, payagg_target, effort)
        if verdict.skipped is not None:
            pytest.skip(f"it needs {verdict.skipped}")
        for broken in verdict.breaks:
            pytest.fail(str(broken), pytrace=False)
        if verdict.violations:
            pytest.skip(verdict.words)

    return check
