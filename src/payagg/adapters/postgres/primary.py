"""Which server is the primary, where more than one may say so of itself: one that was frozen or cut off answers
as the primary until it learns of its successor, with what is out of date (docs/decisions/one-primary.md).

Each promotion begins a timeline with a higher number. So the newest timeline that this process has met tells the others
apart, and where a URL names several hosts all of them are asked, at the same time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psycopg

AGAIN = 0.4  # seconds after which hosts that refused are asked again, while others say nothing
# Seconds that a primary on no newer timeline than known waits for other hosts: refusing takes a standby a moment.
SECOND_LOOK = 0.5
# Seconds of silence after which a connection to one of several hosts is not used again. With the 8 s that an answer may
# take, no server can have lost its place in between: Patroni's `ttl` is 20 s or more.
TRUSTED = 5.0
UNKNOWN = 0
# The timeline that it writes to, which a standby does not: that of the last checkpoint tells of a promotion too late.
ASK = (
    "SELECT (SELECT system_identifier FROM pg_control_system()), CASE WHEN pg_is_in_recovery() THEN 0 "
    "ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END"
)
H = TypeVar("H")


class Timelines:
    """The newest timeline that was met, of each cluster: a new one, restored or upgraded, has a name of its own."""

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}

    def newest(self, cluster: int) -> int:
        return self._newest.get(cluster, UNKNOWN)

    def meet(self, cluster: int, timeline: int) -> None:
        self._newest[cluster] = max(timeline, self.newest(cluster))


class PrimaryConnection(psycopg.AsyncConnection[Any]):
    """A connection with the timeline its server was on when it was made: UNKNOWN where the server does not say,
    or where a pooler may lead each statement to another one."""

    timelines: Timelines | None = None
    cluster = 0
    timeline = UNKNOWN
    trusted = float("inf")  # seconds of silence after which it is not used again

    @property
    def is_stale_primary(self) -> bool:
        """Whether a newer timeline has been met since."""
        return self.timelines is not None and UNKNOWN < self.timeline < self.timelines.newest(self.cluster)

    async def cancel_safe(self, *, timeout: float = 0.0) -> None:  # noqa: ASYNC109 - the driver's words
        """Hangs up. The driver calls this for a task that gave up, and would have that wait for up to 10 s for a server
        that says nothing."""
        self.pgconn.finish()

    async def place(self, timelines: Timelines) -> bool:
        """Asks the server for its timeline; whether that is newer than what was known of its cluster, or not told.

        Raises psycopg.OperationalError when the connection ended, or another server has taken this one's place.
        """
        await self.set_autocommit(True)
        try:
            row = await (await self.execute(ASK)).fetchone()
        except psycopg.Error:
            if self.closed:
                raise
            row = None  # it has no such function, or none for this role
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
