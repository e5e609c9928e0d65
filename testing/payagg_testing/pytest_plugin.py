"""`pytest -p payagg_testing.pytest_plugin`: the conformance machines as tests of your own.

A test that takes `payagg_check` and calls it runs once for each machine. `payagg_target` is what the options name: a
service by its URL, or with `--payagg-over` a store of payagg's in this process. A fixture of your own by
that name may hand in anything else.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from payagg_testing.conformance.target import ConformanceTarget

# Machines are imported by those tests alone: whoever loads the plugin may have no other use of them.
OPTIONS = {
    "url": "the base URL of a test deployment, with /api/v1",
    "over": "instead: memory, a postgresql:// URL, or MODULE:FUNCTION that gives a ConformanceTarget",
    "admin-token": "an administrator's token",
    "sandbox-key": "a sandbox key, where there is no merchant token",
    "provider": "the slug of a provider to play; its account is REPLACED",
    "provider-b": "the same for provider_b",
}
LISTS = {
    "merchant-token": "a manager's token; twice for two users",
    "business": "the id that goes with each merchant token",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("payagg", "conformance of a payagg service")
    for name, words in OPTIONS.items():
        group.addoption(f"--payagg-{name}", help=words)
    for name, words in LISTS.items():
        group.addoption(f"--payagg-{name}", action="append", default=[], help=words)
    group.addoption("--payagg-inbox-port", type=int, help="receive webhooks on this loopback port (0: any)")
    group.addoption("--payagg-histories", type=int, default=30, help="per machine (30)")
    group.addoption("--payagg-seed", type=int, help="repeat a search")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "payagg_machine" in metafunc.fixturenames:
        from payagg_testing.conformance.run import MACHINES

        metafunc.parametrize("payagg_machine", list(MACHINES))


@pytest.fixture(scope="session")
def payagg_target(pytestconfig: pytest.Config) -> "Iterator[ConformanceTarget]":
    """The service at `--payagg-url`, or what `--payagg-over` names; tests that need it are skipped without."""
    from payagg_testing.conformance.access import ServiceAccess
    from payagg_testing.conformance.over import open_target

    option = pytestconfig.getoption
    if option("--payagg-over") is not None:
        target = open_target(option("--payagg-over"))
        yield target
        target.close()
        return
    if option("--payagg-url") is None:
        pytest.skip("no --payagg-url and no --payagg-over")
    target = ServiceAccess(
        url=option("--payagg-url"),
        admin_token=option("--payagg-admin-token"),
        merchant_tokens=option("--payagg-merchant-token"),
        businesses=option("--payagg-business"),
        sandbox_key=option("--payagg-sandbox-key"),
        inbox_port=option("--payagg-inbox-port"),
        provider=option("--payagg-provider"),
        provider_b=option("--payagg-provider-b"),
    ).open_target()
    yield target
    target.close()


@pytest.fixture
def payagg_check(
    payagg_machine: str, payagg_target: "ConformanceTarget", pytestconfig: pytest.Config
) -> Callable[[], None]:
    """Runs one machine: fails with the story of a counterexample, and skips where the target lacks what the machine
    needs."""
    from payagg_testing.conformance.run import Effort, run_machine

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
