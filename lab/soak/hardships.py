"""Processes stand still for longer than any lease, get no more memory or descriptors, or are killed at random as their
Postgres is, while payers go on: each orders in two windows at one moment, and every other one closes the browser."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import psycopg

from lab.kit.figures import RunSummary
from lab.kit.judgement import paid_in
from lab.kit.places import a_folder, a_postgres
from lab.kit.processes import cut_connections, kill_postgres, until
from lab.kit.site import UNLIMITED, Installed, Site, a_site
from payagg.application.payments.status_checks import HOLD
from tests.support.pgbouncer import a_pgbouncer

STRICKEN = ("api0", "worker2")
LONGEST = HOLD.total_seconds() + 10  # seconds; the longest lease of all is HOLD
SHORT, KILLED = 20.0, 240.0
CALM = (0.5, 5.0)  # seconds from one kill to the next
PAYERS, WINDOWS = 8, 2
RETRY = (0.2, 0.3)
END = 3 * HOLD.total_seconds()  # for all to be paid and told; a bound, never an expectation
MORE_MEMORY, MORE_FILES = 0, 2  # bytes and descriptors that one may still have
SERVER_CONNECTIONS = 20  # that a PgBouncer makes of those of all processes


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


def without_memory(process: psutil.Process) -> AbstractContextManager[None]:
    return _limited(process, psutil.RLIMIT_AS, process.memory_info().vms + MORE_MEMORY)


def without_descriptors(process: psutil.Process) -> AbstractContextManager[None]:
    return _limited(process, psutil.RLIMIT_NOFILE, process.num_fds() + MORE_FILES)


async def held(act: Callable[[psutil.Process], AbstractContextManager[None]], site: Site, seconds: float) -> None:
    with ExitStack() as stack:
        for one in STRICKEN:
            stack.enter_context(act(psutil.Process(site.processes.running[one].pid)))
        await asyncio.sleep(seconds)


async def killed(site: Site, seconds: float) -> None:
    """One process, the whole Postgres, or every connection to it; what was killed is started again."""
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        await asyncio.sleep(random.uniform(*CALM))
        match random.choice(("a process", "a process", "Postgres", "connections")):
            case "a process":
                site.processes.kill(random.choice(list(site.ports)))
                await asyncio.to_thread(site.start)
            case "Postgres":
                await asyncio.to_thread(kill_postgres, site.processes.folder / "state")
            case _:
                with suppress(psycopg.OperationalError):  # it may be down
                    await asyncio.to_thread(cut_connections, site.direct)


@dataclass(frozen=True)
class Hardship:
    """`roles`: of the processes that meet it, see `a_site`; `is_pooled`: they reach Postgres through PgBouncer."""

    name: str
    act: Callable[[Site, float], Awaitable[None]]
    seconds: float
    roles: Sequence[str] = ("api",) * 2 + ("worker",) * 2
    is_pooled: bool = False


KILLS = (
    Hardship("killed", killed, KILLED, ("both",) * 2),
    Hardship("killed behind PgBouncer", killed, KILLED, ("api",) * 3 + ("worker",) * 2, is_pooled=True),
)
HARDSHIPS = (
    Hardship("frozen", partial(held, frozen), LONGEST),
    Hardship("without memory", partial(held, without_memory), SHORT),
    Hardship("without descriptors", partial(held, without_descriptors), SHORT),
    *KILLS,
)


async def _tried(folder: Path, hardship: Hardship, previous: Installed | None) -> tuple[str, list[str]]:
    """What is told of it, and what does not hold."""
    name, seconds, settings = hardship.name, hardship.seconds, dict(UNLIMITED)
    async with AsyncExitStack() as stack:
        url = direct = stack.enter_context(a_postgres(folder)).url
        if hardship.is_pooled:
            settings["PAYAGG_PGBOUNCER"] = "1"
            url = await stack.enter_async_context(a_pgbouncer(direct, folder, SERVER_CONNECTIONS))
        site = await stack.enter_async_context(a_site(url, folder, hardship.roles, previous, direct=direct, **settings))
        buyer, over = site.buyer(RETRY), time.monotonic() + seconds

        async def payer(of: int) -> None:
            number = 0
            while time.monotonic() < over:
                number += 1
                key, amount = f"{name} {of} {number}", 10_000 + number
                made, _ = await asyncio.gather(*(buyer.begin(key, amount) for _ in range(WINDOWS)))
                assert made is not None  # it asks until it is told
                buyer.pay(made)
                if of % 2:
                    await buyer.settle(made)
                    await buyer.read(made)
                    await buyer.read(made, again=True)

        paying = [asyncio.create_task(payer(of)) for of in range(PAYERS)]
        await asyncio.sleep(1)  # until requests are under way
        await hardship.act(site, seconds)
        await asyncio.gather(*paying)
        await asyncio.to_thread(site.start)  # who died of it
        began, wanted = time.monotonic(), {one.reference for one in buyer.purchases}
        await asyncio.to_thread(until, lambda: paid_in(direct) >= wanted, "all are paid", END)
        await site.all_told(END)
        took, wrong = time.monotonic() - began, site.wrongs(buyer)
        site.processes.stop_all()
    return f"{name} for {seconds:.0f} s: {len(wanted)} payments, all told {took:.0f} s later; {buyer.phase}", wrong


def tried(tally: RunSummary, hardships: Sequence[Hardship], previous: Installed | None = None) -> None:
    """`previous`: the release of every other process."""
    for one in hardships:
        with a_folder("soak") as folder:
            tally.line(*asyncio.run(_tried(folder, one, previous)))
