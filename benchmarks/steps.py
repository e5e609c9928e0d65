"""What each step of a payment costs: CPU of the server and of Postgres for one request.

CPU is what can be compared on a machine that others use too; rates drift with their load. The requests of a round
make the payments of the next step, so that a round is one pass through the steps; the first pass is a warm-up.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import psutil
import uvloop

from benchmarks import calls, seed
from benchmarks.calls import API, request
from benchmarks.deployment import PROVIDER, PROVIDER_KEY, Deployment
from benchmarks.figures import Cost, PostgresCpu, cpu_seconds
from benchmarks.load import Reply, connected, send_all
from payagg.entrypoints.dev.fake_providers import FakeCharge, FakePaystack
from tests.support.ports import free_port

CONNECTIONS = 16
PAST = 20_000  # payments, of which each business has 20 in its log of deliveries


@dataclass
class Side:
    """A deployment with the payments that its next steps need."""

    deployment: Deployment
    server: psutil.Process
    postgres: PostgresCpu
    number: int  # requests of a step
    port: int
    rounds: int = 0
    opened: list[tuple[int, str]] = field(default_factory=list)  # business, reference

    async def cost(self, requests: Sequence[bytes], word: bytes, status: int = 200) -> tuple[Cost, list[Reply]]:
        """Of each request; each reply must have the status and hold `word`."""
        async with connected(self.port, CONNECTIONS) as connections:
            await asyncio.sleep(0.05)
            self.postgres.start()
            begun = cpu_seconds(self.server)
            replies = await send_all(connections, requests)
            await asyncio.sleep(0.05)  # for what follows an answer: its log line, a session's last words
            used, used_there = cpu_seconds(self.server) - begun, self.postgres.stop()
        number = len(requests) / 1000
        return Cost(used / number, used_there / number), [reply.checked(status, word) for reply in replies]

    def events(self) -> list[bytes]:
        """Signed news that payments are paid, which this adds to the database as handed to the provider."""
        prefix = f"PAY-202406{self.rounds:02}-"
        seed.handed_over(self.deployment.url, prefix, self.number, is_provided=True)
        fake, sent = FakePaystack(header=f"x-{PROVIDER}-signature"), []
        for n in range(1, self.number + 1):
            charge = FakeCharge(
                f"{prefix}{n:06X}", 150_000, "NGN", "test", n, "success", PROVIDER_KEY, "payer@example.com"
            )
            event = fake.event(charge)
            headers = {name: value for name, value in event.headers.items() if name.startswith("x-")}
            proxied = headers | {"X-Forwarded-For": "52.31.139.75"}
            sent.append(request("POST", f"{API}/webhooks/{PROVIDER}/sandbox", proxied, body=event.body))
        return sent


Step = Callable[[Side], Coroutine[Any, Any, Cost]]


def sent(requests: Callable[[Side], Sequence[bytes]], word: bytes) -> Step:
    async def step(side: Side) -> Cost:
        return (await side.cost(requests(side), word))[0]

    return step


def of_opened(request: Callable[[str], bytes], word: bytes) -> Step:
    """One for each payment of the round, by its reference."""
    return sent(lambda side: [request(reference) for _, reference in side.opened], word)


async def initiate(side: Side) -> Cost:
    businesses = [seed.owner(n) for n in range(side.number)]
    cost, replies = await side.cost([calls.initiate(one) for one in businesses], b'"INITIATED"', 201)
    side.opened = [(one, reply.data()["reference"]) for one, reply in zip(businesses, replies, strict=True)]
    return cost


async def event_accepted(side: Side) -> Cost:
    cost, _ = await side.cost(side.events(), b'"received":true')
    await side.cost([calls.detail(f"PAY-202406{side.rounds:02}-000001")], b'"SUCCESS"')
    return cost


STEPS: dict[str, Step] = {
    "initiate": initiate,
    "read": sent(lambda side: [calls.read(*one) for one in side.opened], b'"INITIATED"'),
    "page": of_opened(calls.page, calls.ZIPPED),
    "process": of_opened(calls.process, b'"PENDING"'),
    "verify, settles": of_opened(calls.verify, b'"SUCCESS"'),
    "event accepted": event_accepted,
}


def measure(server: str, chosen: Namespace) -> str:
    """A table of the medians of each step."""
    taken: dict[str, list[Cost]] = {}
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        own = Deployment(stack, "steps", server)
        own.receive()
        seed.payments(own.url, 1, PAST)
        seed.LOADS[1](own.url, 1, PAST)
        side = Side(own, own.serve(), PostgresCpu(own.url), chosen.requests, own.port)
        own.configure_provider()
        limit = replace(side, server=own.bare(port := free_port()), port=port)
        own_steps, limits = [(name, side, STEPS[name]) for name in STEPS], ("initiate", "read")
        each = [*own_steps, *((f"{name}, behind a bare function", limit, STEPS[name]) for name in limits)]
        for side.rounds in range(chosen.rounds + 1):
            for name, asked, step in each:
                cost = runner.run(step(asked))
                if side.rounds:
                    taken.setdefault(name, []).append(cost)
                    print(f"  {name} {cost.server:.3f} + {cost.postgres:.3f} ms", file=sys.stderr, flush=True)
    lines = ["| step | server ms | Postgres ms |", "|---|---|---|"]
    for name, costs in taken.items():
        ours, postgres = (median(cost) for cost in zip(*((one.server, one.postgres) for one in costs), strict=True))
        lines.append(f"| {name} | {ours:.3f} | {postgres:.3f} |")
    return "\n".join(lines)
