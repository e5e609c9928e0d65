"""What each step of a payment costs: CPU of the server and of Postgres for one request, and for one whole journey.

CPU is what can be compared on a machine that others use too; rates drift with their load. The requests of a round
make the payments of the next step, so that a round is one pass through the steps; the first pass is a warm-up.
"""

import asyncio
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import psutil
import uvloop

from benchmarks import journey_calls as calls
from benchmarks import seed, sweeps
from benchmarks.client import API, Connection, Reply, connected, request, send_all, share
from benchmarks.cpu import Cost, PostgresCpu, cpu_seconds
from benchmarks.deployment import PROVIDER, PROVIDER_KEY, Deployment
from benchmarks.harness import count, receiver, wait_for
from payagg.entrypoints.dev.fake_providers import FakeCharge, FakePaystack

CONNECTIONS = 16
PAST = 20_000  # payments, of which each business has 20 in its log of deliveries
SWEEPS = {"expiry": 400, "reconciliation": 100, "inbox": 200, "dispatch": 2_000}
DUE: dict[str, Callable[[str, int, int, int], int]] = {
    "expiry": seed.expired,
    "reconciliation": seed.to_ask,
    "inbox": seed.inbound,
    "dispatch": seed.due_deliveries,
}
JOURNEY = "whole journey"
# ms of CPU: of the server, and for the journey of the worker too; and of Postgres, where that has a target.
TARGETS: dict[str, tuple[float, float | None]] = {
    "page": (0.35, None),
    "detail": (0.35, None),
    "gateways": (0.5, None),
    "process": (1.6, None),
    "verify, settles": (1.6, None),
    "verify, pending": (0.8, None),
    "verify, final": (0.4, None),
    "simulate": (1.0, None),
    "event accepted": (1.2, None),
    "event refused": (0.4, None),
    "deliveries log": (0.6, None),
    "keys": (0.6, None),
    "webhooks": (0.6, None),
    **{f"sweep: {name}": (0.5, None) for name in SWEEPS},
    JOURNEY: (6.0, 2.5),
}


@dataclass
class Side:
    """A deployment with the payments that its next steps need."""

    deployment: Deployment
    server: psutil.Process
    postgres: PostgresCpu
    receiver: str
    number: int  # requests of a step
    rounds: int = 0
    opened: list[tuple[int, str]] = field(default_factory=list)  # business, reference
    silent: list[str] = field(default_factory=list)  # at the simulator, which says nothing
    token: str = ""

    async def send(self, requests: Sequence[bytes], word: bytes, status: int = 200) -> list[Reply]:
        """The replies; each must have the status and hold `word`."""
        async with connected(self.deployment.port, CONNECTIONS) as connections:
            return checked(await send_all(connections, requests), word, status)

    async def cost(self, requests: Sequence[bytes], word: bytes, status: int = 200) -> tuple[Cost, list[Reply]]:
        async with connected(self.deployment.port, CONNECTIONS) as connections:
            await asyncio.sleep(0.05)
            self.postgres.start()
            begun = cpu_seconds(self.server)
            replies = await send_all(connections, requests)
            await asyncio.sleep(0.05)  # for what follows an answer: its log line, a session's last words
            used, used_there = cpu_seconds(self.server) - begun, self.postgres.stop()
        number = len(requests) / 1000
        return Cost(used / number, used_there / number), checked(replies, word, status)

    async def initiated(self) -> list[tuple[int, str]]:
        replies = await self.send(self.initiations(), b'"INITIATED"', 201)
        return paired(replies)

    def initiations(self) -> list[bytes]:
        start = time.time_ns()
        return [calls.initiate(n % seed.BUSINESSES + 1, f"order-{start}-{n}") for n in range(self.number)]

    def of_merchant(self, path: str) -> list[bytes]:
        places = ((n % seed.BUSINESSES + 1) for n in range(self.number))
        return [
            request("GET", f"{API}/merchant/businesses/biz_bench_{n}/{path.format(n)}", bearer=self.token)
            for n in places
        ]

    def events(self, key: str) -> list[bytes]:
        """Signed news that payments are paid, which this adds to the database as handed to the provider."""
        prefix = f"PAY-202406{self.rounds:02}-"
        if key == PROVIDER_KEY:
            seed.handed_over(self.deployment.url, prefix, self.number, is_provided=True)
        fake, sent = FakePaystack(header=f"x-{PROVIDER}-signature"), []
        for n in range(1, self.number + 1):
            charge = FakeCharge(f"{prefix}{n:06X}", 150_000, "NGN", "test", n, "success", key, "payer@example.com")
            event = fake.event(charge)
            headers = {name: value for name, value in event.headers.items() if name.startswith("x-")}
            proxied = headers | {"X-Forwarded-For": "52.31.139.75"}
            sent.append(request("POST", f"{API}/webhooks/{PROVIDER}/sandbox", proxied, body=event.body))
        return sent


def paired(replies: Sequence[Reply]) -> list[tuple[int, str]]:
    return [(n % seed.BUSINESSES + 1, reply.data()["reference"]) for n, reply in enumerate(replies)]


def checked(replies: list[Reply], word: bytes, status: int) -> list[Reply]:
    for reply in replies:
        if reply.status != status or word not in reply.body:
            raise SystemExit(f"not the answer that is measured: {reply.status} {reply.body[:300]!r}")
    return replies


Step = Callable[[Side], Coroutine[Any, Any, Cost]]


def sent(requests: Callable[[Side], Sequence[bytes]], word: bytes, status: int = 200) -> Step:
    async def step(side: Side) -> Cost:
        return (await side.cost(requests(side), word, status))[0]

    return step


def of_opened(request: Callable[[str], bytes], word: bytes) -> Step:
    """One for each payment of the round, by its reference."""
    return sent(lambda side: [request(reference) for _, reference in side.opened], word)


async def initiate(side: Side) -> Cost:
    cost, replies = await side.cost(side.initiations(), b'"INITIATED"', 201)
    side.opened = paired(replies)
    return cost


async def verify_pending(side: Side) -> Cost:
    if not side.silent:
        side.silent = [reference for _, reference in await side.initiated()]
        await side.send([calls.process(reference, calls.SILENT_CARD) for reference in side.silent], b'"PENDING"')
    return (await side.cost([calls.verify(reference) for reference in side.silent], b'"PENDING"'))[0]


async def simulate(side: Side) -> Cost:
    opened = await side.initiated()
    return (await side.cost([calls.simulate(*one) for one in opened], b'"SUCCESS"'))[0]


async def event_accepted(side: Side) -> Cost:
    cost, _ = await side.cost(side.events(PROVIDER_KEY), b'"received":true')
    first = f"PAY-202406{side.rounds:02}-000001"
    await side.send([calls.detail(first)], b'"SUCCESS"')
    return cost


async def journey(side: Side) -> Cost:
    """Initiate, page, detail, gateways, process, two verifies, read, and the webhook received."""
    side.deployment.quiet()
    with side.deployment.worker() as worker:
        async with connected(side.deployment.port, CONNECTIONS) as connections:

            async def one(connection: Connection, n: int) -> None:
                await calls.whole(connection, n % seed.BUSINESSES + 1, f"journey-{time.time_ns()}-{n}")

            received = count(side.receiver)
            await share(connections, range(CONNECTIONS), one)
            wait_for(side.receiver, received + CONNECTIONS)  # so the worker is up
            side.postgres.start()
            begun = cpu_seconds(side.server) + cpu_seconds(worker)
            await share(connections, range(side.number), one)
            wait_for(side.receiver, received + CONNECTIONS + side.number)
            await asyncio.sleep(0.2)
            used = cpu_seconds(side.server) + cpu_seconds(worker) - begun
            used_there = side.postgres.stop()
    return Cost(used * 1000 / side.number, used_there * 1000 / side.number)


VERIFY = of_opened(calls.verify, b'"SUCCESS"')  # the first after `process` settles, the second finds the end
STEPS: dict[str, Step] = {
    "context": sent(
        lambda side: [request("GET", f"{API}/payments/context", bearer=seed.secret(n + 1)) for n in range(side.number)],
        b"biz_bench_",
    ),
    "initiate": initiate,
    "read": sent(lambda side: [calls.read(*one) for one in side.opened], b'"INITIATED"'),
    "page": of_opened(calls.page, b"<html"),
    "detail": of_opened(calls.detail, b'"INITIATED"'),
    "gateways": of_opened(calls.gateways, b'"sandbox"'),
    "process": of_opened(calls.process, b'"PENDING"'),
    "verify, settles": VERIFY,
    "verify, final": VERIFY,
    "verify, pending": verify_pending,
    "simulate": simulate,
    "event accepted": event_accepted,
    "event refused": sent(lambda side: side.events("sk_test_wrong"), b"INVALID_WEBHOOK_SIGNATURE", 400),
    "deliveries log": sent(lambda side: side.of_merchant("webhooks/whe_bench_{}/deliveries"), b'"total":'),
    "keys": sent(lambda side: side.of_merchant("api-keys"), b"key_bench_"),
    "webhooks": sent(lambda side: side.of_merchant("webhooks"), b"whe_bench_"),
    JOURNEY: journey,
}


def measure(server: str, chosen: Namespace) -> tuple[dict[str, Any], str]:
    """The rounds of each step, and a table of their medians."""
    taken: dict[str, list[Cost]] = {}
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        target = receiver(stack)
        own = Deployment(stack, "steps", server)
        own.endpoints(f"{target}/hook")
        seed.payments(own.url, 1, PAST)
        seed.LOADS[1](own.url, 1, PAST)
        side = Side(own, own.serve(), PostgresCpu(own.url), target, chosen.requests)
        side.token = own.token(type="merchant", emailVerified=True)
        own.configure_provider()
        for side.rounds in range(chosen.rounds + 1):
            for step, cost in one_round(side, runner).items():
                if side.rounds:
                    taken.setdefault(step, []).append(cost)
                    print(f"  {step} {cost.server:.2f} + {cost.postgres:.2f} ms", file=sys.stderr, flush=True)
    return {step: [asdict(cost) for cost in costs] for step, costs in taken.items()}, table(taken)


def one_round(side: Side, runner: asyncio.Runner) -> dict[str, Cost]:
    found = {step: runner.run(run(side)) for step, run in STEPS.items()}
    own = side.deployment
    own.quiet()
    for sweep, number in SWEEPS.items():
        DUE[sweep](own.url, side.rounds, PAST, number)
    return found | runner.run(sweeps.costs(own.url, own.environment, SWEEPS))


def table(taken: dict[str, list[Cost]]) -> str:
    """Targets beside the medians of what was measured."""
    lines = ["| step | server ms | target | Postgres ms |", "|---|---|---|---|"]
    for step, costs in taken.items():
        server, postgres = TARGETS.get(step, (None, None))
        told = f"{median(cost.postgres for cost in costs):.2f}"
        told += "" if postgres is None else f" (target {postgres:g})"
        target = "" if server is None else f"{server:g}"
        lines.append(f"| {step} | {median(cost.server for cost in costs):.2f} | {target} | {told} |")
    return "\n".join(lines)
