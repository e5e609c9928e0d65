"""One side of a comparison of steps: a deployment, the clocks of its processes, and the requests made for it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
import psycopg

from benchmarks import journey_calls as calls
from benchmarks import seed
from benchmarks.client import API, Reply, connected, request, send_all
from benchmarks.cpu import PostgresCpu, cpu_seconds
from benchmarks.deployment import PROVIDER, PROVIDER_KEY, Deployment
from payagg.testing.fake_providers import FakeCharge, FakePaystack

CONNECTIONS = 16


@dataclass(frozen=True)
class Cost:
    """ms of CPU for one request, item or journey."""

    server: float
    postgres: float


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

    async def measure(self, requests: Sequence[bytes], word: bytes, status: int = 200) -> tuple[Cost, list[Reply]]:
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
            at_provider(self.deployment.url, prefix, self.number)
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


def at_provider(url: str, prefix: str, number: int) -> None:
    """Payments that were handed to the provider and are not asked about, as an event is to bring their end."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in (
            """
            INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, sequence,
                                  created_at, updated_at, expires_at)
            SELECT %(p)s || upper(lpad(to_hex(n), 6, '0')), 'biz_bench_' || (n %% 1000 + 1), 'SANDBOX', 150000, 'NGN',
                   'PENDING', 'provider_a', 1, now(), now(), now() + interval '1 hour' FROM generate_series(1, %(n)s::int) n
            """,
            """
            INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
            SELECT %(p)s || upper(lpad(to_hex(n), 6, '0')), 1, 'INITIATED', 'PENDING', 'PROCESS', 'bench', now()
            FROM generate_series(1, %(n)s::int) n
            """,
            """
            INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until,
                                  hand_off_kind, hand_off_url, created_at, handed_off_at, asks)
            SELECT r, 1, 'gw_provider_a', 'provider_a', r, 'token', 'HANDED_OFF', now(), 'REDIRECT',
                   'https://pay.example/', now(), now(), 0
            FROM generate_series(1, %(n)s::int) n, LATERAL (SELECT %(p)s || upper(lpad(to_hex(n), 6, '0')) AS r) t
            """,
        ):
            connection.execute(statement, {"p": prefix, "n": number})
