"""The payment machine over the use cases on Postgres: the same rules, unchanged."""

import asyncio

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from payagg_testing.state_machine.machine import payment_machine

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.system import SystemEntropy
from tests.support.rounds import scaled
from tests.support.state_machine.histories import tell
from tests.support.state_machine.store_system import StoreSystem

BRIEF = settings(
    max_examples=scaled(6),
    stateful_step_count=20,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_no_history_on_postgres_breaks_a_promise(database_url: str) -> None:
    with asyncio.Runner() as runner:

        async def opened() -> PostgresStore:
            return PostgresStore(database_url, pool_size=2, pgbouncer=False)

        store = runner.run(opened())
        try:
            machine = payment_machine(lambda: StoreSystem(runner.run, store, SystemEntropy("PAY")))
            tell(machine)
            run_state_machine_as_test(machine, settings=BRIEF)
        finally:
            runner.run(store.close())
