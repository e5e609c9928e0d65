"""`--only back`: what a front that takes 500 whole payments a second leaves to the workers, offered for as long as told,
and how soon nothing of it is left.

Each second: two events with a delivery for each payment, one in ten that expired, one in twenty that nobody paid and
that is due to be asked about. It is written by SQL, as the front would, so that the workers have the machine.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks import seed
from benchmarks.deployment import Deployment
from benchmarks.harness import count

PAYMENTS = 500  # a second
EXPIRED = PAYMENTS // 10
UNPAID = PAYMENTS // 20
PATIENCE = 300  # seconds that the workers get afterwards
WAITING = {
    "deliveries": "SELECT count(*) FROM deliveries WHERE next_attempt_at <= now()",
    "expiries": "SELECT count(*) FROM payments WHERE status = 'INITIATED' AND expires_at <= now()",
    "asks": "SELECT count(*) FROM attempts WHERE next_ask_at <= now()",
    "inbox": "SELECT count(*) FROM inbox WHERE next_attempt_at <= now()",
}


@dataclass
class Backlog:
    """How much waited at most while it was offered, and seconds from then on until nothing did."""

    most: dict[str, int]
    empty_after: dict[str, float | None]
    received: int


def measured(deployment: Deployment, receiver: str, seconds: int, workers: int) -> dict[str, Any]:
    deployment.endpoints(receiver)
    with ExitStack() as stack, psycopg.connect(deployment.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for _ in range(workers):
            stack.enter_context(deployment.worker())
        time.sleep(3)
        backlog = offered(connection, seconds)
        backlog.received = count(receiver)
    return {
        "payments": PAYMENTS * seconds,
        "seconds": seconds,
        "workers": workers,
        "most_waiting": backlog.most,
        "empty_after_seconds": backlog.empty_after,
        "webhooks": backlog.received,
    }


def offered(connection: psycopg.Connection[Any], seconds: int) -> Backlog:
    most = dict.fromkeys(WAITING, 0)
    begun = time.monotonic()
    for second in range(seconds):
        for statement in load(second):
            connection.execute(statement.encode())
        waiting = looked_at(connection)
        most = {name: max(most[name], waiting[name]) for name in WAITING}
        print(f"  back {second + 1:4} s: {waiting}", flush=True)
        time.sleep(max(0.0, begun + second + 1 - time.monotonic()))
    ended = time.monotonic()
    empty: dict[str, float | None] = dict.fromkeys(WAITING)
    while None in empty.values() and time.monotonic() < ended + PATIENCE:
        for name, number in looked_at(connection).items():
            if not number and empty[name] is None:
                empty[name] = round(time.monotonic() - ended, 1)
        time.sleep(0.2)
    return Backlog(most, empty, 0)


def looked_at(connection: psycopg.Connection[Any]) -> dict[str, int]:
    found = {}
    for name, query in WAITING.items():
        row = connection.execute(query.encode()).fetchone()
        found[name] = int(row[0]) if row else 0
    return found


def load(second: int) -> list[str]:
    """The statements of one second; numbers go on from the last one's."""
    first, last = second * PAYMENTS * 2 + 1, (second + 1) * PAYMENTS * 2
    reference = "'PAY-20250107-' || upper(lpad(to_hex(n), 6, '0'))"
    expired, asked = (f"'PAY-{day}-' || upper(lpad(to_hex({second * number} + n), 6, '0'))" for day, number in (
        ("20250108", EXPIRED), ("20250109", UNPAID)))  # fmt: skip
    now = "(extract(epoch FROM now()) * 1000)"
    return [
        seed.events(first, last, now, reference),
        seed.deliveries(first, last, now, reference).replace("'DELIVERED', 1, NULL", "'PENDING', 0, now()"),
        *seed.expired_payments(expired, EXPIRED),
        *seed.handed_over(asked, UNPAID, "now()"),
    ]
