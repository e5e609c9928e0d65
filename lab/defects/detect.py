"""`python -m lab.defects.detect DETECTOR WHAT`: whether the simulation or the harness notices a defect.

The runner starts it in a copy of the product with the defect in it. Its last line says what was noticed; exit status 1
when nothing was.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import structlog
from payagg_testing import ConformanceTarget, Effort, run_machine
from payagg_testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg_testing.memory.store import MemoryStore, MemoryTransaction

from lab.simulation.history import simulate
from tests.support.in_process import InProcess

HISTORIES_MAX = 1_500  # of the simulation: within so many every defect must be found
HUNT = Effort(histories=200, actions=30, seed=1, shrinks=False)


def simulation(invariant: str) -> str | None:
    for seed in range(HISTORIES_MAX):
        broken = simulate(seed).broken
        if broken is not None and broken.name == invariant:
            return f"{broken} ({seed + 1} histories)"
    return None


def harness(machine: str) -> str | None:
    with product() as target:
        verdict = run_machine(machine, target, HUNT)
    assert verdict.skipped is None, verdict.skipped
    # A defect that only breaks the program would be caught by anything: the harness must see what it does.
    if verdict.violation is None or verdict.violation.fault == "the status is 500":
        return None
    return f"{verdict.violation.fault} ({verdict.requests} requests)"


class TurnsStore(MemoryStore):
    """Other requests have their turn before each transaction, as at a database."""

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[MemoryTransaction]:
        await asyncio.sleep(0)
        async with super().begin() as tx:
            yield tx


@contextmanager
def product() -> Iterator[ConformanceTarget]:
    """The application over the in-memory store, with providers that the harness plays."""
    _hush()
    world, accounts = InProcess(TurnsStore()), (ProviderAccount(), ProviderBAccount())
    target = world.target(provider=accounts[0], provider_b=accounts[1])
    yield target
    target.service.close()
    world.close()
    for account in accounts:
        account.close()


def _hush() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


if __name__ == "__main__":
    detector, what = sys.argv[1:]
    noticed = {"harness": harness, "simulation": simulation}[detector](what)
    sys.stdout.write(f"{noticed or 'nothing'}\n")
    sys.exit(noticed is None)
