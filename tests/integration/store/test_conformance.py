"""The conformance machines over the product on Postgres: the same rules, unchanged."""

import asyncio
from collections.abc import Iterator

import pytest

from payagg.adapters.postgres.store import PostgresStore
from payagg.testing.conformance.provider import ProviderAccount
from payagg.testing.conformance.run import MACHINES, Effort, run_machine
from payagg.testing.conformance.target import ConformanceTarget
from tests.support.conformance_world import InProcess
from tests.support.rounds import scaled

BRIEF = Effort(histories=scaled(3), actions=12)


@pytest.fixture
def target(database_url: str) -> Iterator[ConformanceTarget]:
    with asyncio.Runner() as runner:

        async def opened() -> PostgresStore:
            return PostgresStore(database_url, pool_size=5, pgbouncer=False)

        store, provider = runner.run(opened()), ProviderAccount()
        target = InProcess(store, runner.run).target(provider=provider)
        yield target
        target.close()
        runner.run(store.close())


@pytest.mark.parametrize("name", MACHINES)
def test_the_product_on_postgres_passes(name: str, target: ConformanceTarget) -> None:
    verdict = run_machine(name, target, BRIEF)
    assert (verdict.violation, verdict.skipped) == (None, None)
