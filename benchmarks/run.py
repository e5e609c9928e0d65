"""`python -m benchmarks.run [--rounds 5] [--seconds 8] [--only initiate,read,...] [--without NAME] [--json FILE]`, and
`--only steps [--against FOLDER] [--requests 400] [--svg FILE]`, `--only journey`, `--only waiting`, `--only ablation` and
`--only footprint`.

Every operation alternates rounds with its limit in the same run, so a machine whose speed drifts still gives a fair
ratio. The limit of initiate and read is pgbench doing the same rows and statements; of deliveries, the receiver's own
rate is far above and the target is a plain number. Figures are medians over rounds.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks import (
    ablation,
    back,
    bars,
    footprint,
    growth,
    journey,
    processes,
    runner,
    seed,
    steps,
    waiting,
    without,
)
from benchmarks.deliveries import fall_due, page_ms, seed_deliveries, settle
from benchmarks.deployment import OWN, Deployment
from benchmarks.harness import (
    Round,
    count,
    memory_mib,
    middle,
    pgbench,
    postgres,
    process,
    wait_for,
    wrk,
)
from payagg.adapters.postgres.migrations.upgrade import migrate
from tests.support.ports import free_port

CONNECTIONS = 64
PAST = 10_000
DUE = 1_500  # deliveries a second, beside initiations
SECRETS = {
    "PAYAGG_JWT_KEY": "a key of the benchmarks with 32 bytes or more",
    "PAYAGG_JWT_ALGORITHM": "HS256",
    "PAYAGG_ENCRYPTION_KEYS": "bench:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=",
}


class Bench:
    """One database with its past payments, the service and the reference build, and the table of figures. Each
    operation of `--only` is a method."""

    def __init__(self, stack: ExitStack, chosen: argparse.Namespace) -> None:
        self.rounds, self.seconds, self.past = chosen.rounds, chosen.seconds, chosen.past
        self.chosen = chosen
        self.figures: dict[str, Any] = {}
        self.url = stack.enter_context(postgres())
        migrate(self.url)
        seed.businesses(self.url)
        seed.payments(self.url, 1, PAST)
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.keys = self.folder / "keys"
        self.keys.write_text("".join(f"{seed.secret(n)}\n" for n in range(1, seed.BUSINESSES + 1)))
        self.reads = self.folder / "reads"
        self.reads.write_text(
            "".join(f"{seed.secret(seed.owner(n))} /api/v1/payments/{seed.reference(n)}\n" for n in range(1, PAST + 1))
        )
        self.environment = SECRETS | {
            "PAYAGG_DATABASE_URL": self.url,
            "BENCH_DATABASE_URL": sqlalchemy_url(self.url),
        }
        port = free_port()
        self.service_url = f"http://127.0.0.1:{port}"
        ready = self.service_url + "/readyz"
        self.service = stack.enter_context(process(self.serve(port), self.environment, ready))
        port = free_port()
        self.reference_url = f"http://127.0.0.1:{port}"
        plain = ["-m", "uvicorn", "benchmarks.reference:app", "--port", str(port)]
        quiet = ["--no-access-log", "--log-level", "warning"]
        self.reference = stack.enter_context(process([*plain, *quiet], self.environment, None))
        time.sleep(3)

    def serve(self, port: int) -> list[str]:
        """How the measured server is started: as it is shipped, or without what `--without` names."""
        own = ["-m", "payagg", "serve", "--no-worker", "--port", str(port)]
        return without.arguments(self.chosen.without, port) if self.chosen.without else own

    def alternate(self, name: str, sides: dict[str, Callable[[], Round]]) -> dict[str, Round]:
        """Runs every side in turn, `rounds` times after one warm-up each; keeps and returns the medians."""
        taken: dict[str, list[Round]] = {side: [] for side in sides}
        for number in range(self.rounds + 1):
            for side, run in sides.items():
                result = run()
                if number:
                    taken[side].append(result)
                    print(f"  {name} {side} {result.rate:9.0f}/s", file=sys.stderr, flush=True)
        medians = {side: middle(rounds) for side, rounds in taken.items()}
        self.figures[name] = {side: asdict(m) for side, m in medians.items()} | {
            "rounds": {side: [asdict(r) for r in rounds] for side, rounds in taken.items()}
        }
        return medians

    def initiate(self) -> None:
        self._three("initiate", "initiate", self.keys, "initiate.sql", keys=seed.BUSINESSES)

    def read(self) -> None:
        self._three("read", "get", self.reads, "read.sql", keys=seed.BUSINESSES, payments=PAST)

    def lone(self) -> None:
        """One connection: latency is the figure."""
        self.alternate(
            "initiate, 1 connection",
            {
                "payagg": lambda: wrk(self.service_url, "initiate", self.keys, 1, self.seconds),
                "limit": lambda: pgbench(self.url, "initiate.sql", 1, self.seconds, keys=seed.BUSINESSES),
            },
        )

    def _three(self, name: str, mode: str, calls: Path, script: str, **variables: int) -> None:
        self.alternate(
            name,
            {
                "payagg": lambda: wrk(self.service_url, mode, calls, CONNECTIONS, self.seconds),
                "limit": lambda: pgbench(self.url, script, CONNECTIONS, self.seconds, **variables),
                "reference": lambda: wrk(self.reference_url, mode, calls, CONNECTIONS, self.seconds),
            },
        )

    def memory(self) -> None:
        """Resident memory after at least 100,000 initiations, and the time from start to ready."""
        sent = 0.0
        while sent < 100_000:
            sent += wrk(self.service_url, "initiate", self.keys, CONNECTIONS, 10).rate * 10
        starts = []
        for _ in range(self.rounds):
            port = free_port()
            begun = time.monotonic()
            with process(
                self.serve(port),
                self.environment,
                f"http://127.0.0.1:{port}/readyz",
            ):
                starts.append(time.monotonic() - begun)
        self.figures["memory"] = {"mib_per_process": memory_mib(self.service), "after_payments": int(sent)}
        self.figures["start"] = {"seconds_to_ready": sorted(starts)[len(starts) // 2]}

    def deliver(self) -> None:
        """Signed webhooks a second from one worker process to a bare receiver; then DUE of them a second beside
        initiations at full speed, and what that costs these."""
        with ExitStack() as stack:
            port = free_port()
            address = f"http://127.0.0.1:{port}"
            stack.enter_context(process(["-m", "benchmarks.receiver", str(port)], {}, address + "/count"))
            backlog, paced = 4_000 * self.seconds, DUE * (self.seconds + 1)
            seed_deliveries(self.url, self.environment, f"{address}/hook", backlog + paced * self.rounds)
            fall_due(self.url, 1, backlog)
            worker = stack.enter_context(process(without.arguments(self.chosen.without), self.environment, None))
            wait_for(address, 1)
            start, first = count(address), time.monotonic()
            wait_for(address, backlog - 1_000)  # without the last ones, of which there are too few at once
            rate = (count(address) - start) / (time.monotonic() - first)
            wait_for(address, backlog)
            # The times of all rounds are set beforehand: what setting them costs the database belongs to none.
            slot = self.seconds + 2
            begins = time.monotonic() + 30
            for number in range(self.rounds):
                after = begins + (2 * number + 1) * slot - time.monotonic() - 0.5
                fall_due(self.url, backlog + number * paced + 1, paced, after=after, each=1 / DUE)
            settle(self.url)
            alone, meanwhile, rates = [], [], []
            for number in range(2 * self.rounds):
                time.sleep(max(0.0, begins + number * slot - time.monotonic()))
                start, first = count(address), time.monotonic()
                result = wrk(self.service_url, "initiate", self.keys, CONNECTIONS, self.seconds)
                if number % 2:
                    meanwhile.append(result)
                    rates.append((count(address) - start) / (time.monotonic() - first))
                else:
                    alone.append(result)
            self.figures["deliver"] = {
                "rate": rate,
                "rate_meanwhile": median(rates),
                "worker_mib": memory_mib(worker),
                "initiate_alone": asdict(middle(alone)),
                "initiate_meanwhile": asdict(middle(meanwhile)),
                "initiate_rounds": [[one.rate, other.rate] for one, other in zip(alone, meanwhile, strict=True)],
            }

    def ablation(self) -> None:
        """Every optimisation's operations with it and without it."""
        calls = {"initiate": self.keys, "get": self.reads}
        sides = ablation.Ablation(self.url, self.folder, calls, self.environment, self.rounds, self.seconds)
        self.figures["ablation"] = sides.measure()

    def growth(self) -> None:
        """Every operation and sweep at `past` payments beside the same at ten thousand."""
        growth.measure(self.url, self.folder, SECRETS, self.past, self.seconds, self.alternate)

    def steps(self) -> None:
        """CPU of each step of a payment, beside another checkout's where one is given."""
        chosen = self.chosen
        figures = steps.measure(self.url, SECRETS, chosen.against, self.rounds, chosen.requests)
        self.figures["steps"] = {"targets": steps.TARGETS, "ms": figures}
        if chosen.svg:
            chosen.svg.write_text(bars.picture(figures, steps.TARGETS))

    def journey(self) -> None:
        """Whole journeys a second beside pgbench and the plain build; latencies are of `process`, of pgbench's a whole
        journey's."""
        self.figures["journey, beside its targets"] = journey.measure(self.url, SECRETS, self.seconds, self.alternate)

    def footprint(self) -> None:
        """What a payment leaves in the database, by table and by index."""
        self.figures["footprint"] = footprint.measure(self.url, SECRETS, 5 * self.chosen.requests)

    def waiting(self) -> None:
        """Reads beside 500 payments that wait for their provider."""
        for name, figure in waiting.measure(self.url, SECRETS, self.rounds).items():
            self.figures[f"waiting, {name}"] = figure

    def processes(self) -> None:
        """What a second and a fourth server process gain, and what they wait for."""
        loads = {
            "initiate": lambda address: wrk(address, "initiate", self.keys, CONNECTIONS, self.seconds),
            "read": lambda address: wrk(address, "get", self.reads, CONNECTIONS, self.seconds),
        }
        self.figures["processes"] = processes.measure(self.url, self.environment, self.rounds, loads)

    def back(self) -> None:
        """What 500 whole payments a second leave to the workers, and how soon nothing of it is left."""
        with ExitStack() as stack:
            port = free_port()
            receiver = f"http://127.0.0.1:{port}"
            stack.enter_context(process(["-m", "benchmarks.receiver", str(port)], {}, receiver + "/count"))
            deployment = Deployment(stack, "back", OWN, self.url, SECRETS)
            self.figures["back"] = back.measured(deployment, receiver, self.seconds, self.chosen.workers)

    def runner(self) -> None:
        """One transaction by four ways to run a statement."""
        self.figures["runner"] = runner.figures(self.url, self.rounds)

    def log(self) -> None:
        """The deliveries log of an endpoint with a million rows beside one with a thousand, as the use case reads it."""
        seed.ended_deliveries(self.url, {"whe_bench_small": 1_000, "whe_bench_big": 1_000_000})
        self.figures["log"] = {
            "p50_ms_first_page_of_thousand": page_ms(self.url, "whe_bench_small", 0),
            "p50_ms_first_page_of_million": page_ms(self.url, "whe_bench_big", 0),
            "p50_ms_page_50_of_million": page_ms(self.url, "whe_bench_big", 1_000),
            "p50_ms_page_45000_of_million": page_ms(self.url, "whe_bench_big", 900_000),
        }

    def table(self) -> str:
        if "ablation" in self.figures:
            return ablation.table(self.figures["ablation"])
        if "steps" in self.figures and len(self.figures) == 1:
            return steps.table(self.figures["steps"]["ms"])
        lines = [
            "| operation | side | rate/s | p50 ms | p99 ms | errors | payagg's ratio |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, figure in self.figures.items():
            if name == "steps":
                lines.insert(0, steps.table(figure["ms"]) + "\n")
                continue
            if "payagg" not in figure:
                told = {key: value for key, value in figure.items() if key != "rounds"}
                lines.append(f"| {name} | {json.dumps(told)} | | | | | |")
                continue
            for side in [s for s in figure if s != "rounds"]:
                own = figure[side]
                ratio = "" if side == "payagg" else f"{figure['payagg']['rate'] / own['rate']:.2f}"
                lines.append(
                    f"| {name} | {side} | {own['rate']:.0f} | {own['p50']:.2f} | {own['p99']:.2f} | {own['errors']} | {ratio} |"
                )
        return "\n".join(lines)


def sqlalchemy_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--only", default="initiate,lone,read,deliver,memory")
    parser.add_argument("--past", type=int, default=10_000_000, help="payments in the large database of `growth`")
    parser.add_argument(
        "--without",
        type=without.named,
        default=[],
        help=f"optimisations that are taken away from what is measured, a comma list of {', '.join(without.OPTIMISATIONS)}",
    )
    parser.add_argument("--workers", type=int, default=1, help="of `back`")
    parser.add_argument("--against", type=Path, help="another checkout of payagg, for `steps`")
    parser.add_argument("--requests", type=int, default=400, help="of each step and round of `steps`")
    parser.add_argument("--svg", type=Path, help="where to draw `steps`")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/figures.json"))
    chosen = parser.parse_args()
    with ExitStack() as stack:
        bench = Bench(stack, chosen)
        for name in chosen.only.split(","):
            getattr(bench, name)()
        print(bench.table())
        machine = {"cpus": psutil.cpu_count(), "python": platform.python_version(), "system": platform.system()}
        chosen.json.write_text(
            json.dumps({"machine": machine, "without": chosen.without, "figures": bench.figures}, indent=1) + "\n"
        )
        if ablation.errors(bench.figures.get("ablation", {})):
            raise SystemExit("some requests or deliveries failed")


if __name__ == "__main__":
    main()
