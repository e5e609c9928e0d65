"""Finds the primary when more than one server claims to be it: a frozen or isolated one answers as the primary, with
outdated data, until it learns of its successor. `target_session_attrs` does not help: it is true there as well.

Each promotion begins a timeline with a higher number. So the newest timeline seen by this process decides, and when a
URL names several hosts all are tried at the same time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psycopg

AGAIN = 0.4  # seconds after which hosts that refused are tried again, while others do not answer
# Seconds that a primary on a known timeline waits for other hosts: a standby refuses within a moment.
SECOND_LOOK = 0.5
# Seconds of silence after which a connection to one of several hosts is not used again. With the 8 s that an answer may
# take, no server can have lost its place in between: Patroni's `ttl` is 20 s or more.
TRUSTED = 5.0
UNKNOWN = 0
# The timeline it writes to, which only a primary has: that of the last checkpoint shows a promotion too late.
ASK = (
    "SELECT (SELECT system_identifier FROM pg_control_system()), CASE WHEN pg_is_in_recovery() THEN 0 "
    "ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END"
)
H = TypeVar("H")


class Timelines:
    """The newest timeline seen, by cluster: a restored or upgraded cluster has its own identifier."""

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}

    def newest(self, cluster: int) -> int:
        return self._newest.get(cluster, UNKNOWN)

    def meet(self, cluster: int, timeline: int) -> None:
        self._newest[cluster] = max(timeline, self.newest(cluster))


class PrimaryConnection(psycopg.AsyncConnection[Any]):
    """A connection with its server's timeline at connect: UNKNOWN when the server does not show it, or when a pooler
    may route each statement to another server."""

    timelines: Timelines | None = None
    cluster = 0
    timeline = UNKNOWN
    trusted = float("inf")  # seconds of silence after which it is not used again

    @property
    def is_stale_primary(self) -> bool:
        """Whether a newer timeline has been seen since."""
        return self.timelines is not None and UNKNOWN < self.timeline < self.timelines.newest(self.cluster)

    async def cancel_safe(self, *, timeout: float = 0.0) -> None:  # noqa: ASYNC109 - the driver's words
        """Closes the connection. The driver calls this for a cancelled task, and would wait up to 10 s for an
        unresponsive server."""
        self.pgconn.finish()

    async def place(self, timelines: Timelines) -> bool:
        """Reads the server's timeline; whether that is newer than the known one of its cluster, or not shown.

        Raises psycopg.OperationalError when the connection ended, or another server has taken this one's place.
        """
        await self.set_autocommit(True)
        try:
            row = await (await self.execute(ASK)).fetchone()
        except psycopg.Error:
            if self.closed:
                raise
            row = None  # no such function, or not for this role
        await self.set_autocommit(False)
        if row is None:
            return True
        self.timelines, (self.cluster, self.timeline) = timelines, row
        before = timelines.newest(self.cluster)
        timelines.meet(self.cluster, self.timeline)
        if self.is_stale_primary:
            raise psycopg.OperationalError("another server has taken its place as primary")
        return UNKNOWN < before < self.timeline


Ask = Callable[[H], Awaitable[tuple[PrimaryConnection, bool]]]


async def newest_primary(hosts: Sequence[H], ask: Ask[H]) -> PrimaryConnection:
    """A connection to the host that takes writes, on the newest timeline of those that answer.

    `ask` connects to a host and says whether nobody can be ahead of it; it raises psycopg.Error for one that is no
    primary. A host that says nothing holds nobody up: the others are asked again meanwhile, as one of them may be
    promoted. Raises the last error once every host has refused.
    """
    asking = {asyncio.ensure_future(ask(host)): host for host in hosts}
    refused: set[H] = set()
    found: list[PrimaryConnection] = []
    best: PrimaryConnection | None = None
    is_ahead = False
    try:
        while not found:
            done, _ = await asyncio.wait(asking, timeout=AGAIN, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                host = asking.pop(task)
                try:
                    connection, ahead = task.result()
                except psycopg.Error as error:
                    refused.add(host)
                    refusal = error
                else:
                    found.append(connection)
                    is_ahead = is_ahead or ahead
            if not found and len(refused) == len(hosts):
                raise refusal
            if not done:
                asking |= {asyncio.ensure_future(ask(host)): host for host in refused.difference(asking.values())}
        if asking and not is_ahead:
            done, _ = await asyncio.wait(asking, timeout=SECOND_LOOK)
            found += [task.result()[0] for task in done if task.exception() is None]
        best = max(found, key=lambda one: one.timeline)
        return best
    finally:
        for task in asking:
            task.cancel()
        ended = await asyncio.gather(*asking, return_exceptions=True)
        for one in (*found, *(answer[0] for answer in ended if isinstance(answer, tuple))):
            if one is not best:
                await one.close()
