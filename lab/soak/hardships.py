"""One server and one worker of several stand still for longer than any lease, or get no more memory or descriptors."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psutil

from lab.kit.figures import RunSummary
from lab.kit.judgement import paid_in
from lab.kit.places import a_folder, a_postgres
from lab.kit.processes import until
from lab.kit.site import a_site
from payagg.application.payments.status_checks import HOLD

CREW = ("api",) * 2 + ("worker",) * 2
STRICKEN = ("api0", "worker2")
LONGEST = HOLD.total_seconds() + 10  # seconds; the longest lease of all is HOLD
SHORT = 20.0
PAYERS = 8
RETRY = (0.2, 0.3)
END = 3 * HOLD.total_seconds()  # for all to be paid and told; a bound, never an expectation
MORE_MEMORY, MORE_FILES = 0, 2  # bytes and descriptors that one may still have


@contextmanager
def frozen(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    yield
    process.resume()


@contextmanager
def _limited(process: psutil.Process, limit: int, most: int) -> Iterator[None]:
    before, hard = process.rlimit(limit)
    process.rlimit(limit, (most, hard))
    yield
    if process.is_running():
        process.rlimit(limit, (before, hard))


Act = AbstractContextManager[None]


def without_memory(process: psutil.Process) -> Act:
    return _limited(process, psutil.RLIMIT_AS, process.memory_info().vms + MORE_MEMORY)


def without_descriptors(process: psutil.Process) -> Act:
    return _limited(process, psutil.RLIMIT_NOFILE, process.num_fds() + MORE_FILES)


ACTS: dict[str, tuple[Callable[[psutil.Process], Act], float]] = {
    "frozen": (frozen, LONGEST),
    "without memory": (without_memory, SHORT),
    "without descriptors": (without_descriptors, SHORT),
}


async def _tried(url: str, folder: Path, name: str) -> tuple[str, list[str]]:
    """What is told of one act, and what does not hold."""
    act, seconds = ACTS[name]
    async with a_site(url, folder, CREW) as site:
        buyer, number = site.buyer(RETRY), 0
        over = time.monotonic() + seconds

        async def payer(of: int) -> None:
            nonlocal number
            while time.monotonic() < over:
                number += 1
                made = await buyer.begin(f"{name} {of} {number}", 10_000 + number)
                assert made is not None  # it asks until it is told
                buyer.pay(made)
                await asyncio.sleep(RETRY[0])

        with ExitStack() as held:
            paying = [asyncio.create_task(payer(of)) for of in range(PAYERS)]
            await asyncio.sleep(1)  # until requests are under way
            for one in STRICKEN:
                held.enter_context(act(psutil.Process(site.processes.running[one].pid)))
            await asyncio.sleep(seconds)
        await asyncio.gather(*paying)
        await asyncio.to_thread(site.start)  # who died of it
        began, wanted = time.monotonic(), {one.reference for one in buyer.purchases}
        await asyncio.to_thread(until, lambda: paid_in(url) >= wanted, "all are paid", END)
        await site.all_told(END)
        wrong = site.wrongs(buyer)
        site.processes.stop_all()
    took = time.monotonic() - began
    return f"{name} for {seconds:.0f} s: {len(wanted)} payments, all told {took:.0f} s later; {buyer.phase}", wrong


def hardships(tally: RunSummary) -> None:
    for name in ACTS:
        with a_folder("soak") as folder, a_postgres(folder) as postgres:
            told, wrong = asyncio.run(_tried(postgres.url, folder, name))
        tally.line(told, wrong)
