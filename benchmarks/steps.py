"""What each step of a payment costs: CPU of the server and of Postgres for one request, and for one whole journey.

CPU is what can be compared on a machine that others use too; rates drift with their load. The requests of a round
make the payments of the next step, so that a round is one pass through the steps; the first pass is a warm-up.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from benchmarks import journey_calls as calls
from benchmarks import seed
from benchmarks.client import API, Connection, connected, request, share
from benchmarks.cpu import PostgresCpu, cpu_seconds
from benchmarks.deployment import OWN, PROVIDER_KEY, Deployment
from benchmarks.harness import count, process, wait_for
from benchmarks.side import CONNECTIONS, Cost, Side, paired
from tests.support.ports import free_port

PAST = 20_000  # payments, of which each business has 20 in its log of deliveries
SWEEPS = {"expiry": 400, "reconciliation": 100, "inbox": 200, "dispatch": 2_000}
DUE = {"expiry": seed.expired, "reconciliation": seed.to_ask, "inbox": seed.inbound, "dispatch": seed.due_deliveries}
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


async def context(side: Side) -> Cost:
    requests = [request("GET", f"{API}/payments/context", bearer=seed.secret(n + 1)) for n in range(side.number)]
    return (await side.measure(requests, b"biz_bench_"))[0]


async def initiate(side: Side) -> Cost:
    cost, replies = await side.measure(side.initiations(), b'"INITIATED"', 201)
    side.opened = paired(replies)
    return cost


async def read(side: Side) -> Cost:
    return (await side.measure([calls.read(*one) for one in side.opened], b'"INITIATED"'))[0]


async def page(side: Side) -> Cost:
    return (await side.measure([calls.page(reference) for _, reference in side.opened], b"<html"))[0]


async def detail(side: Side) -> Cost:
    return (await side.measure([calls.detail(reference) for _, reference in side.opened], b'"INITIATED"'))[0]


async def gateways(side: Side) -> Cost:
    return (await side.measure([calls.gateways(reference) for _, reference in side.opened], b'"sandbox"'))[0]


async def charge(side: Side) -> Cost:
    return (await side.measure([calls.process(reference) for _, reference in side.opened], b'"PENDING"'))[0]


async def verify(side: Side) -> Cost:
    """The first verify after `charge` settles, the second finds the end."""
    return (await side.measure([calls.verify(reference) for _, reference in side.opened], b'"SUCCESS"'))[0]


async def verify_pending(side: Side) -> Cost:
    if not side.silent:
        side.silent = [reference for _, reference in await side.initiated()]
        await side.send([calls.process(reference, calls.SILENT_CARD) for reference in side.silent], b'"PENDING"')
    return (await side.measure([calls.verify(reference) for reference in side.silent], b'"PENDING"'))[0]


async def simulate(side: Side) -> Cost:
    opened = await side.initiated()
    return (await side.measure([calls.simulate(*one) for one in opened], b'"SUCCESS"'))[0]


async def event_accepted(side: Side) -> Cost:
    cost, _ = await side.measure(side.events(PROVIDER_KEY), b'"received":true')
    first = f"PAY-202406{side.rounds:02}-000001"
    await side.send([calls.detail(first)], b'"SUCCESS"')
    return cost


async def event_refused(side: Side) -> Cost:
    return (await side.measure(side.events("sk_test_wrong"), b"INVALID_WEBHOOK_SIGNATURE", 400))[0]


async def log(side: Side) -> Cost:
    return (await side.measure(side.of_merchant("webhooks/whe_bench_{}/deliveries"), b'"total":'))[0]


async def keys(side: Side) -> Cost:
    return (await side.measure(side.of_merchant("api-keys"), b"key_bench_"))[0]


async def webhooks(side: Side) -> Cost:
    return (await side.measure(side.of_merchant("webhooks"), b"whe_bench_"))[0]


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


STEPS: dict[str, Callable[[Side], Coroutine[Any, Any, Cost]]] = {
    "context": context,
    "initiate": initiate,
    "read": read,
    "page": page,
    "detail": detail,
    "gateways": gateways,
    "process": charge,
    "verify, settles": verify,
    "verify, final": verify,
    "verify, pending": verify_pending,
    "simulate": simulate,
    "event accepted": event_accepted,
    "event refused": event_refused,
    "deliveries log": log,
    "keys": keys,
    "webhooks": webhooks,
    JOURNEY: journey,
}


def measure(server: str, secrets: dict[str, str], against: Path | None, rounds: int, number: int) -> dict[str, Any]:
    """The medians of each side's steps, with their rounds."""
    roots = {"payagg": OWN} | ({"against": against.resolve()} if against else {})
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        port = free_port()
        receiver = f"http://127.0.0.1:{port}"
        stack.enter_context(process(["-m", "benchmarks.receiver", str(port)], {}, receiver + "/count"))
        sides = []
        for name, root in roots.items():
            deployment = Deployment(stack, f"steps_{name}", root, server, secrets)
            deployment.endpoints(f"{receiver}/hook")
            seed.payments(deployment.url, 1, PAST)
            seed.LOADS[1](deployment.url, 1, PAST)
            side = Side(deployment, deployment.serve(), PostgresCpu(deployment.url), receiver, number)
            side.token = deployment.token(type="merchant", emailVerified=True)
            deployment.configure_provider()
            sides.append(side)
        taken: dict[str, dict[str, list[Cost]]] = {name: {} for name in roots}
        for number_of_round in range(rounds + 1):
            for name, costs in one_round(sides if number_of_round % 2 else sides[::-1], runner):
                for step, cost in costs.items():
                    if number_of_round:
                        taken[name].setdefault(step, []).append(cost)
                        print(
                            f"  {step} {name} {cost.server:.2f} + {cost.postgres:.2f} ms", file=sys.stderr, flush=True
                        )
    return {name: {step: summary(costs) for step, costs in steps.items()} for name, steps in taken.items()}


def one_round(sides: Sequence[Side], runner: asyncio.Runner) -> "list[tuple[str, dict[str, Cost]]]":
    """Each step on each side, one side right after the other; then the sweeps."""
    costs: list[tuple[str, dict[str, Cost]]] = []
    for side in sides:
        side.rounds += 1
    for step, run in STEPS.items():
        costs += [(side.deployment.name.removeprefix("steps_"), {step: runner.run(run(side))}) for side in sides]
    for side in sides:
        side.deployment.quiet()
        for sweep, number in SWEEPS.items():
            DUE[sweep](side.deployment.url, side.rounds, PAST, number)
        told = side.deployment.sweep(SWEEPS)
        swept = {f"sweep: {name}": Cost(cost["server_ms"], cost["postgres_ms"]) for name, cost in told.items()}
        costs.append((side.deployment.name.removeprefix("steps_"), swept))
    return costs


def summary(costs: list[Cost]) -> dict[str, Any]:
    return {
        "server_ms": median(c.server for c in costs),
        "postgres_ms": median(c.postgres for c in costs),
        "rounds": [[c.server, c.postgres] for c in costs],
    }


def table(figures: dict[str, Any]) -> str:
    """Targets beside what was measured; of the other checkout where there is one."""
    others = [name for name in figures if name != "payagg"]
    heads = [
        "step",
        "server ms",
        "target",
        "Postgres ms",
        *(head for n in others for head in (f"{n}: server, Postgres ms", f"payagg / {n}")),
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for step, own in figures["payagg"].items():
        server, postgres = TARGETS.get(step, (None, None))
        cells = [step, f"{own['server_ms']:.2f}", "" if server is None else f"{server:g}", f"{own['postgres_ms']:.2f}"]
        if postgres is not None:
            cells[-1] += f" (target {postgres:g})"
        for name in others:
            other = figures[name][step]
            cells.append(f"{other['server_ms']:.2f}, {other['postgres_ms']:.2f}")
            # Of each pair of rounds, as they ran within the same seconds.
            pairs = zip(own["rounds"], other["rounds"], strict=True)
            cells.append(f"{median(mine[0] / theirs[0] for mine, theirs in pairs):.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
