"""What payments that wait for their provider cost everybody else: the latency of reads on one process, alone and while
500 payers wait for an answer to `process`.

Twice, since waiting and arriving are two things. `at once`: all 500 press the button in one moment and the provider
answers in 100 ms, so that most of them wait for this process's core. `only waiting`: they come a few at a time to a
provider that answers much later, and reads are timed while all 500 wait and nothing else happens.
"""

import asyncio
import json
import sys
import time
import urllib.request
from contextlib import ExitStack
from statistics import median
from typing import Any

import uvloop

from benchmarks import journey_calls as calls
from benchmarks import seed
from benchmarks.client import API, Connection, Reply, connected, payer, request, send_all, share
from benchmarks.deployment import OWN, PROVIDER, Deployment
from benchmarks.harness import process
from tests.support.ports import free_port

PAYERS = 500
TIMES = 2  # target: reads take at most twice as long
READERS = 4
PAUSE_SECONDS = 0.01  # between two reads of a reader: some 350 a second, far from what fills the core
ANSWER_SECONDS = 0.1
LATE_SECONDS = 9.0  # below the deadline of a provider call
ALONE_SECONDS = 4.0
ARRIVAL_SECONDS = 4.0  # over which the 500 of `only waiting` come; what is left of LATE_SECONDS is measured,
SETTLE_SECONDS = 1.5  # but for the time that the last ones need to get there


class Crowd:
    """One server at one late provider."""

    def __init__(self, stack: ExitStack, name: str, server: str, secrets: dict[str, str], seconds: float) -> None:
        self.seconds = seconds
        port = free_port()
        self.provider = f"http://127.0.0.1:{port}"
        stack.enter_context(process(["-m", "benchmarks.late_provider", str(port), str(seconds)], {}, self.provider))
        self.deployment = Deployment(stack, name, OWN, server, secrets)
        self.deployment.serve("benchmarks.server")
        self.deployment.configure_provider(sandboxBaseUrl=self.provider)

    async def at_once(self) -> dict[str, float]:
        """Reads alone, then from the first press of the button to the last answer."""
        async with (
            connected(self.deployment.port, PAYERS) as payers,
            connected(self.deployment.port, READERS) as readers,
        ):
            references = await self._initiated(payers)
            alone = await self._reads(readers, references, asyncio.create_task(asyncio.sleep(ALONE_SECONDS)))
            begun = time.monotonic()
            pressed = asyncio.create_task(send_all(payers, [self._press(one) for one in references]))
            beside = await self._reads(readers, references, pressed)
            taken = time.monotonic() - begun
        errors = failed(pressed.result())
        return {"alone": alone, "beside": beside, "seconds": taken, "errors": errors, **self._waiting()}

    async def only_waiting(self) -> dict[str, float]:
        """Reads alone, then while all wait."""
        async with (
            connected(self.deployment.port, PAYERS) as payers,
            connected(self.deployment.port, READERS) as readers,
        ):
            references = await self._initiated(payers)
            alone = await self._reads(readers, references, asyncio.create_task(asyncio.sleep(ALONE_SECONDS)))
            presses = []
            begun = time.monotonic()
            for connection, reference in zip(payers, references, strict=True):
                presses.append(asyncio.create_task(connection.exchange(self._press(reference))))
                await asyncio.sleep(ARRIVAL_SECONDS / PAYERS)
            await asyncio.sleep(SETTLE_SECONDS)
            waiting = self._waiting()["waiting"]
            left = begun + self.seconds - time.monotonic()
            beside = await self._reads(readers, references, asyncio.create_task(asyncio.sleep(left)))
            replies = await asyncio.gather(*presses)
        errors = failed(replies)
        return {"alone": alone, "beside": beside, "seconds": max(left, 0.0), "errors": errors, "waiting": waiting}

    async def _initiated(self, payers: list[Connection]) -> list[str]:
        orders = [calls.initiate(n % seed.BUSINESSES + 1, f"waiting-{time.time_ns()}-{n}") for n in range(PAYERS)]
        return [reply.data()["reference"] for reply in await send_all(payers, orders)]

    def _press(self, reference: str) -> bytes:
        path = f"{API}/public/payments/{reference}/process"
        return request("POST", path, payer(), body={"gatewaySlug": PROVIDER})

    async def _reads(self, readers: list[Connection], references: list[str], until: "asyncio.Task[Any]") -> float:
        """The p99 in ms of reads sent while `until` is not done."""
        taken: list[float] = []

        async def keep_on(connection: Connection, number: int) -> None:
            while not until.done():
                number = (number + READERS) % len(references)
                reply = await connection.exchange(calls.read(number % seed.BUSINESSES + 1, references[number]))
                if reply.status != 200:
                    raise SystemExit(f"read: {reply.status} {reply.body[:300]!r}")
                taken.append(reply.seconds)
                await asyncio.sleep(PAUSE_SECONDS)

        await share(readers, range(READERS), keep_on)
        await until
        return 1000 * sorted(taken)[len(taken) * 99 // 100]

    def _waiting(self) -> dict[str, float]:
        with urllib.request.urlopen(self.provider, timeout=10) as answer:
            told: dict[str, float] = json.load(answer)
        return told


def failed(replies: list[Reply]) -> int:
    """How many were not sent on to the provider's page; tells of one."""
    wrong = [reply for reply in replies if b'"REDIRECT"' not in reply.body]
    if wrong:
        print(f"  process: {wrong[0].status} {wrong[0].body[:300]!r}", file=sys.stderr, flush=True)
    return len(wrong)


def measure(server: str, secrets: dict[str, str], rounds: int) -> dict[str, Any]:
    """Medians over the rounds after a warm-up."""
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        crowds = {
            "at once": Crowd(stack, "waiting_at_once", server, secrets, ANSWER_SECONDS),
            "only waiting": Crowd(stack, "waiting_only", server, secrets, LATE_SECONDS),
        }
        figures: dict[str, Any] = {}
        for name, crowd in crowds.items():
            run = crowd.at_once if name == "at once" else crowd.only_waiting
            taken = [runner.run(run()) for _ in range(rounds + 1)][1:]
            figures[name] = {
                "read_p99_ms_alone": median(one["alone"] for one in taken),
                "read_p99_ms_beside": median(one["beside"] for one in taken),
                "times": median(one["beside"] / one["alone"] for one in taken),
                "target": TIMES,
                "errors": sum(one["errors"] for one in taken),
                "rounds": taken,
            }
    return figures
