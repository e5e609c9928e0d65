"""What everybody else waits for while one merchant asks for whatever costs the most, as often as it may.

The others read and initiate at an even pace, alone and beside it in turn. It exports, lists payments with 16 KB of
metadata and sums up 400,000 payments, over six connections, and pauses only where it is refused.
"""

import asyncio
import multiprocessing
import socket
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count

import httpx

from benchmarks import calls, seed
from benchmarks.calls import API, request
from benchmarks.deployment import Deployment
from benchmarks.figures import Alternation, Round
from benchmarks.load import Connection, exchanges, rate
from tests.support.http_world import bearer

PAYMENTS, LARGE = 400_000, 5_000  # of the one merchant; LARGE of them, the newest, with 16 KB of metadata
OTHERS, PAUSE = 16, 0.05  # connections, and seconds between two requests of one
REFUSED = 0.1  # seconds that the merchant waits after a refusal
LIVE_KEY = "ssk_live_" + "1" * 48


def _asked() -> list[str]:
    until = datetime.now(UTC)
    month = f"from={until - timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}&to={until:%Y-%m-%dT%H:%M:%SZ}"
    return [f"/payments/export?{month}", "/payments?limit=100", f"/payments/summary?{month}"]


def _burden(port: int) -> None:
    """The merchant, until its process is ended."""
    for path in _asked() * 2:
        threading.Thread(target=_asks_again, args=(port, path)).start()


def _asks_again(port: int, path: str) -> None:
    sent = request("GET", API + path, {"Connection": "close"}, bearer=LIVE_KEY)
    while True:
        with closing(socket.create_connection(("127.0.0.1", port))) as client:
            client.sendall(sent)
            status = client.recv(12)[9:]
            while client.recv(1 << 20):
                pass
        if status != b"200":
            time.sleep(REFUSED)


def _others(port: int, seconds: int, call: Callable[[], bytes], status: int) -> Round:
    ask = exchanges(call, status)

    async def act(connection: Connection) -> float:
        await asyncio.sleep(PAUSE)
        return await ask(connection)

    return rate(port, OTHERS, seconds, act)


def _beside(port: int, run: Callable[[], Round]) -> Round:
    merchant = multiprocessing.get_context("spawn").Process(target=_burden, args=(port,))
    merchant.start()
    try:
        time.sleep(2)  # until the merchant is at work
        return run()
    finally:
        merchant.kill()
        merchant.join()


def measure(server: str, chosen: Namespace) -> str:
    rounds, number = Alternation(chosen.rounds), count()
    with ExitStack() as stack:
        own = Deployment(stack, "neighbours", server)
        seed.payments(own.url, 1, seed.BUSINESSES)
        seed.payments_of_one(own.url, LIVE_KEY, PAYMENTS, LARGE)
        own.serve()
        for path in _asked():  # or it would be no burden
            with httpx.stream("GET", own.address + API + path, headers=bearer(LIVE_KEY), trust_env=False) as answer:
                answer.raise_for_status()
        others = {
            "read": (lambda: calls.read(*seed.past(next(number), seed.BUSINESSES - 1)), 200),
            "initiate": (lambda: calls.initiate(next(number) % (seed.BUSINESSES - 1) + 2), 201),
        }
        for name, (call, status) in others.items():
            alone = partial(_others, own.port, chosen.seconds, call, status)
            rounds.add(name, {"beside it": partial(_beside, own.port, alone), "alone": alone})
    return rounds.table()
