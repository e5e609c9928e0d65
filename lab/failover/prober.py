"""When the database takes writes, asked through a route with plain psycopg and nothing of payagg's."""

import asyncio
import logging
import time
from contextlib import suppress
from itertools import pairwise
from typing import Any

import psycopg

EVERY = 0.15  # seconds
PATIENCE = 2.0
AT_ONCE = 4  # tries on one address: one that says nothing must not hold up the next


class ProbingConnection(psycopg.AsyncConnection[Any]):
    """Hangs up when its try is over. The driver would ask the server to cancel, and wait for up to 10 s for that."""

    async def cancel_safe(self, *, timeout: float = 0.0) -> None:  # noqa: ASYNC109 - the driver's words
        self.pgconn.finish()


class Prober:
    """Writes a row through the address of a route that takes writes, or while none does through each of them; each
    write on a connection of its own."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self._writer = ""  # through which the last write came
        self.written: list[float] = []

    async def run(self) -> None:
        """Until it is cancelled."""
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # it tells of each try that was given up
        await asyncio.gather(*(self._ask(url, EVERY * place) for url in self._urls for place in range(AT_ONCE)))

    async def _ask(self, url: str, first: float) -> None:
        await asyncio.sleep(first)
        while True:
            is_well = bool(self.written) and time.monotonic() - self.written[-1] < 2 * EVERY
            tries = [self._try(url)] if url == self._writer or not is_well else []
            await asyncio.gather(asyncio.sleep(EVERY * AT_ONCE), *tries)

    async def _try(self, url: str) -> None:
        with suppress(psycopg.Error, OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                connection = await ProbingConnection.connect(url, autocommit=True, prepare_threshold=None)
                try:
                    await connection.execute("INSERT INTO probes VALUES (now())")
                    self.written.append(time.monotonic())
                    self._writer = url
                finally:
                    await connection.close()

    def recovered(self, since: float, until: float) -> float:
        """When the database took writes again that it had not taken for the longest time between the two; `since` where
        it never stopped for longer than the pause between two writes."""
        gaps = [(after - before, after) for before, after in pairwise(sorted(self.written))]
        longest, end = max((gap for gap in gaps if gap[1] > since and gap[1] - gap[0] < until), default=(0.0, since))
        return end if longest > 2 * EVERY else since
