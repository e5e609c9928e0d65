"""The conformance machines over the product on Postgres: the same rules, unchanged, by one argument."""

from collections.abc import Iterator

import pytest
from payagg_testing import AccessError, ConformanceTarget, Effort, open_target, run_machine
from payagg_testing.conformance.run import MACHINES

from tests.support.rounds import scaled

BRIEF = Effort(histories=scaled(1), actions=12)


@pytest.fixture
def target(database_url: str) -> Iterator[ConformanceTarget]:
    target = open_target(database_url)
    yield target
    target.close()


@pytest.mark.parametrize("name", MACHINES)
def test_the_product_on_postgres_passes(name: str, target: ConformanceTarget) -> None:
    verdict = run_machine(name, target, BRIEF)
    assert (verdict.violation, verdict.skipped) == (None, None)


def test_a_database_without_the_schema_is_named(postgres: str) -> None:
    with pytest.raises(AccessError, match="payagg migrate"):
        open_target(postgres)
