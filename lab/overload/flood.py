"""Merchants' servers that order more than is carried, and ask again as an SDK does: later, by chance, under the same key."""

import asyncio
import heapq
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field

import uvloop

from benchmarks.calls import API, request
from benchmarks.load import Connection
from lab.kit.buyer import GOOD, Purchase

PATIENCE = 3.0  # seconds; who has no answer by then hangs up and asks again
TRIES = 4
PAUSE = 0.5  # seconds before the second try, at most; twice as long before each further one, and what Retry-After says
TICK = 0.005  # seconds
LATER = re.compile(rb"\r\nretry-after: (\d+)\r\n")
ENVELOPE = b'{"success":false,"error":{"code":'
AMOUNT = 150_000  # kobo


@dataclass
class Flood:
    """Orders under one secret key."""

    port: int
    secret: str
    name: str
    acknowledged: dict[str, Purchase] = field(default_factory=dict)  # by idempotency key
    asked: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    _free: int = 0
    _again: list[tuple[float, str, int]] = field(default_factory=list)  # when, key, tries before

    def run(self, connections: int, seconds: float, rate: float = 0.0) -> "Flood":
        """So many requests a second, those asked again among them; without a `rate`, one after each answer."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._run(connections, seconds, rate))
        return self

    async def _run(self, connections: int, seconds: float, rate: float) -> None:
        queue = asyncio.Queue[tuple[str, int] | None]()
        senders = [asyncio.create_task(self._send(number, queue)) for number in range(connections)]
        began, due = time.monotonic(), 0
        while (now := time.monotonic()) < began + seconds:
            wanted = int((now - began) * rate) - due if rate else self._free
            due += wanted
            for _ in range(min(wanted, self._free)):
                self._free -= 1
                queue.put_nowait(self._next(now))
            await asyncio.sleep(TICK if rate else 0)
        for _ in senders:
            queue.put_nowait(None)
        await asyncio.gather(*senders)

    def _next(self, now: float) -> tuple[str, int]:
        if self._again and self._again[0][0] <= now:
            return heapq.heappop(self._again)[1:]
        self.asked.add(key := f"{self.name} {len(self.asked)}")
        return key, 0

    async def _send(self, number: int, queue: "asyncio.Queue[tuple[str, int] | None]") -> None:
        connection: Connection | None = None
        source = f"127.0.{1 + number // 250}.{1 + number % 250}"  # one address may not have every connection
        self._free += 1
        while (taken := await queue.get()) is not None:
            key, tries = taken
            wait = random.uniform(0, PAUSE * 2**tries)
            body = {"amount": AMOUNT, "idempotencyKey": key}
            try:
                async with asyncio.timeout(PATIENCE):
                    if connection is None:
                        made = asyncio.get_running_loop().create_connection(
                            Connection, "127.0.0.1", self.port, local_addr=(source, 0)
                        )
                        connection = (await made)[1]
                    reply = await connection.exchange(
                        request("POST", f"{API}/payments/initiate", bearer=self.secret, body=body)
                    )
            except OSError as error:  # TimeoutError is one
                self.answers[type(error).__name__] += 1
                if connection is not None:
                    connection.close()
                connection = None
            else:
                self.answers[str(reply.status)] += 1
                later = LATER.search(connection.head)
                if reply.status in GOOD:
                    self._acknowledge(key, reply.data()["reference"])
                    tries = TRIES
                elif reply.status in (429, 503) and later and reply.body.startswith(ENVELOPE):
                    wait += int(later[1])
                else:
                    self.false.append(f"{reply.status} {reply.body[:200]!r}")
            if tries + 1 < TRIES:
                heapq.heappush(self._again, (time.monotonic() + wait, key, tries + 1))
            self._free += 1
        if connection is not None:
            connection.close()

    def _acknowledge(self, key: str, reference: str) -> None:
        known = self.acknowledged.setdefault(key, Purchase(key, AMOUNT, reference, "sandbox"))
        if known.reference != reference:
            self.false.append(f"{key} made {known.reference} and {reference}")
