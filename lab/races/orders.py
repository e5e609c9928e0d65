"""Every order in which the statements of two or three calls about one payment can reach a Postgres.

Each caller is a server of its own. It stops before each round trip, and one of those that may go on is let through: the
next order takes the last choice that has an alternative. Who waits for a lock is passed over until it has it. Of orders
that differ in neighbours alone which touch nothing in common, one is tried (sleep sets, Godefroid 1996).
"""

import asyncio
import random
import re
import sys
import time
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from payagg_testing.builders import AN_ADMIN

from lab.races.actors import ACTORS, OTHERS, RaceCall, begun, judge, starts
from lab.races.grid import BUSINESS, Answered, Grid, a_grid
from lab.races.model import RaceState
from payagg.adapters.postgres.pipeline import ROLLBACK, StatementConnection
from payagg.adapters.postgres.repositories.payments import BUSINESS_OF
from payagg.adapters.postgres.schema.tables import metadata
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.errors import Refusal
from tests.support.provider_world import PATIENCE

CALLERS = (
    *("initiate again", "process", "verify", "simulated success", "event of success", "the hour ends", "reconciler"),
    "the drain ends",
)
TRIPLES = (("process", "process", "event of success"), ("event of success", "verify", "reconciler"))
CROWDS = (*combinations_with_replacement(CALLERS, 2), *TRIPLES)
MOMENTS = {"the hour ends", "the drain ends"}
LOOK_SECONDS = 0.003  # how long an answer may take before somebody asks who stands in its way
BLOCKERS = "SELECT cardinality(pg_blocking_pids(%s)) > 0"


PAYMENT = "payments"
# Of one payment, its locks count as one: keys hang together.
OF_PAYMENT = {PAYMENT, "attempts", "transitions", "events", "deliveries", "anomalies", "idempotency_keys"}
# Written by who has locked the payment's row: to him a further statement about them is no further lock.
GUARDED = {PAYMENT, "transitions", "events", "deliveries", "anomalies"}
TABLES = set(metadata.tables) - {"provider_calls"}  # each adds its own rows there, and no caller reads them
WRITTEN = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)")
# Words that may name a table: `attempts` and `events` are columns, too, behind a dot, in the list of an INSERT or before
# what they are set to.
COLUMNS = re.compile(r"(INSERT INTO [a-z_]+(?: AS [a-z_]+)?) \([^)]*\)")
WORDS = re.compile(r"(?<![.a-z_])[a-z_]+(?![a-z_]|\s*=)")


class Effect(NamedTuple):
    """The tables that a round trip reads, locks or unlocks, and whose new rows it shows to the others."""

    reads: frozenset[str] = frozenset()
    locks: frozenset[str] = frozenset()
    shows: frozenset[str] = frozenset()

    def commutes(self, other: "Effect") -> bool:
        is_seen = self.shows & (other.reads | other.shows) or other.shows & self.reads
        return not (is_seen or self.locks & other.locks)


CLOCK = frozenset({"clock"})  # every round trip reads it


@dataclass
class OrderNode:
    """A place at which callers `may` go on, what each would do, who need not as an equal order was tried, and whom the
    orders until now took."""

    may: list[int]
    effects: dict[int, Effect]
    asleep: set[int]
    taken: list[int]

    def asleep_after(self) -> set[int]:
        *before, last = self.taken
        return {one for one in {*before, *self.asleep} if self.effects[one].commutes(self.effects[last])}

    def left(self) -> list[int]:
        return [one for one in self.may if one not in self.asleep and one not in self.taken]


@dataclass
class Caller:
    """One server's statements. `gates` are its round trips that wait to be let through, `sent` those of which there is
    no answer, by the number of their backend."""

    gates: list[tuple[asyncio.Future[None], Effect]] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)
    task: "asyncio.Task[Answered] | None" = None
    began: float = 0.0
    has_claimed: bool = False
    is_polling: bool = False  # for the end of another's claim


class PathLost(Exception):
    """From that round trip on, the same choices led elsewhere before. Two who wait for a row that is then updated race
    for its new version."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


LOST_MAX = 200  # in a row


class SteppedConnection(StatementConnection):
    """Stops before each round trip."""

    turns: "Turns"
    caller: Caller
    is_ending = False
    held: frozenset[str] = frozenset()  # locks since BEGIN
    written: frozenset[str] = frozenset()

    async def commit(self) -> None:
        self.is_ending = True
        try:
            await super().commit()
        finally:
            self.is_ending = False

    def _effect(self) -> Effect:
        reads, locks = set(CLOCK), set[str]()
        for one in self._unsent:
            sql = one.statement.sql.decode()
            named = set(WORDS.findall(COLUMNS.sub(r"\1", sql))) & TABLES
            reads |= named
            if not one.statement.reads:
                self.written |= named & set(WRITTEN.findall(sql))
                is_locked = PAYMENT in self.held and named <= GUARDED
                locks |= set() if is_locked else {PAYMENT if name in OF_PAYMENT else name for name in named}
            self.is_ending |= one.statement is ROLLBACK
        self.held |= locks
        if not self.is_ending and self._in_block:
            return Effect(frozenset(reads), frozenset(locks))
        done = Effect(frozenset(reads), self.held, self.written)
        self.held = self.written = frozenset()
        return done

    async def _exchange(self) -> Any:
        if not self.turns.is_stepping:
            return await super()._exchange()
        is_claim = any(one.statement is BUSINESS_OF for one in self._unsent)
        await self.turns.wait(self.caller, self._effect(), is_polling=is_claim and self.caller.has_claimed)
        self.caller.has_claimed |= is_claim
        pid = self._wire.backend_pid
        self.caller.sent.add(pid)
        try:
            return await super()._exchange()
        finally:
            self.caller.sent.discard(pid)


@dataclass
class Turns:
    """Whose statement is sent next. A choice is the number of a caller."""

    watch: "psycopg.AsyncConnection[Any]"
    callers: list[Caller] = field(default_factory=list)
    is_stepping: bool = False
    waited: int = 0  # times that somebody was passed over

    async def wait(self, caller: Caller, effect: Effect, *, is_polling: bool = False) -> None:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        caller.is_polling = is_polling
        caller.gates.append((gate, effect))
        await gate
        caller.began = caller.began or time.monotonic()

    def start(self, calls: Sequence[RaceCall], firsts: Sequence[Effect]) -> None:
        """The calls, one of each caller; with `firsts` what they do before their first statement has its turn, too."""

        async def answered(caller: Caller, one: RaceCall, first: Effect | None) -> Answered:
            if first is not None:
                await self.wait(caller, first)
            try:
                answer = await one.call()
            except Exception as error:  # noqa: BLE001 - judged by whoever raced
                answer = error
            return Answered(answer, caller.began, time.monotonic())

        for caller, one, first in zip_longest(self.callers, calls, firsts):
            caller.began, caller.has_claimed, caller.is_polling = 0.0, False, False
            caller.task = asyncio.create_task(answered(caller, one, first))

    async def follow(self, path: list[OrderNode]) -> bool:
        """Lets callers through as `path` says, and then always the first, which lengthens it. Whether the order is a
        new one; the end of another one is not stepped. Raises PathLost."""
        last, depth = self.callers[0], 0
        while True:
            await self._settle(last)  # first: whoever waited for its lock has it only once it was answered
            for caller in self.callers:
                await self._settle(caller)
            ready = [number for number, caller in enumerate(self.callers) if caller.gates]
            if not ready and all(caller.task is None or caller.task.done() for caller in self.callers):
                return True
            if not ready:
                await asyncio.sleep(LOOK_SECONDS)  # all wait for locks: Postgres ends that
                continue
            self.waited += sum(bool(caller.sent) for caller in self.callers)
            # Another look at a claim that is alive is worth a turn only where nobody else can move.
            may = [number for number in ready if not self.callers[number].is_polling] or ready
            if depth == len(path):
                asleep = path[-1].asleep_after() if path else set()
                effects = {number: self.callers[number].gates[0][1] for number in ready}
                node = OrderNode(may, effects, asleep & set(may), [])
                if not node.left():
                    self.let_all_go()
                    return False
                node.taken.append(node.left()[0])
                path.append(node)
            if may != path[depth].may:
                self.let_all_go()
                raise PathLost(depth)
            last = self.callers[path[depth].taken[-1]]
            last.gates.pop(0)[0].set_result(None)
            depth += 1
            await asyncio.sleep(0)

    def let_all_go(self) -> None:
        self.is_stepping = False
        for caller in self.callers:
            while caller.gates:
                caller.gates.pop(0)[0].set_result(None)

    async def _settle(self, caller: Caller) -> None:
        """Until it stops before a statement, waits for a lock or is done."""
        until = time.monotonic() + PATIENCE
        while not caller.gates and caller.task is not None and not caller.task.done():
            assert time.monotonic() < until, "it neither asks, waits nor ends"
            await asyncio.wait({caller.task}, timeout=LOOK_SECONDS / 10)
            for pid in tuple(caller.sent):
                [is_blocked] = await (await self.watch.execute(BLOCKERS, [pid])).fetchone() or [False]
                if is_blocked and pid in caller.sent:
                    return


@asynccontextmanager
async def a_stepped_grid(database_url: str, folder: Path) -> AsyncIterator[tuple[Grid, Turns]]:
    """Three servers; `callers` of the turns are theirs."""
    async with (
        await psycopg.AsyncConnection.connect(database_url, autocommit=True) as watch,
        a_grid(database_url, folder, servers=3) as grid,
    ):
        turns = Turns(watch)
        for server in grid.servers:
            store, caller = server.store, Caller()
            assert isinstance(store, PostgresStore)
            store.pool._new = _stepping(store, turns, caller)  # type: ignore[method-assign]
            await store.pool.close()  # those that do not stop
            turns.callers.append(caller)
        yield grid, turns


def _stepping(store: PostgresStore, turns: Turns, caller: Caller) -> Any:
    connect = store.pool._connect

    async def new() -> SteppedConnection:
        made = SteppedConnection(await connect())
        made.turns, made.caller = turns, caller
        return made

    return new


@dataclass
class OrdersFound:
    orders: int = 0
    tries: int = 0  # with those that turned out to equal an earlier one
    waited: int = 0
    longest: int = 0  # round trips
    left: int = 0  # ends of orders that never came back
    broken: list[str] = field(default_factory=list)


async def every_order(grid: Grid, turns: Turns, names: Sequence[str], most: int | None = None) -> OrdersFound:
    """Tries all of them from each start, and of each not more than `most`."""
    found = OrdersFound()
    for start in starts(names):
        path: list[OrderNode] = []
        end, again = found.orders + (most or sys.maxsize), 0
        while found.orders < end:
            lost = await _try(grid, turns, names, start, path, found)
            if lost is not None and (again := again + 1) < LOST_MAX:
                continue
            if lost is not None:
                found.left += 1
                del path[lost:]
            again = 0
            while path and not path[-1].left():
                path.pop()
            if not path:
                break
            path[-1].taken.append(path[-1].left()[0])
    return found


async def _try(
    grid: Grid, turns: Turns, names: Sequence[str], start: RaceState, path: list[OrderNode], found: OrdersFound
) -> int | None:
    """The round trip from which it could not follow the path, if there is one. What else it met is judged all the
    same."""
    found.tries += 1
    await turns.watch.execute("UPDATE attempts SET next_ask_at = NULL WHERE next_ask_at IS NOT NULL")  # of others
    own = await begun(grid, names, f"{names} {time.monotonic_ns()}", start)
    calls = []
    for name, server in zip(names, grid.servers, strict=False):
        alone = replace(own, grid=replace(grid, servers=[server]))
        calls.append((ACTORS | OTHERS)[name](alone, random.Random(0))[-1])
    everybody, turns.callers = turns.callers, turns.callers[: len(calls)]
    before = turns.waited
    turns.is_stepping = True
    try:
        firsts = [Effect(shows=CLOCK) if name in MOMENTS else Effect(reads=CLOCK) for name in names]
        turns.start(calls, firsts if MOMENTS & set(names) else [])
        found.orders += await turns.follow(path)
        lost = None
    except PathLost as other:
        lost = other.depth
    finally:
        turns.let_all_go()
    answers = [await caller.task for caller in turns.callers if caller.task is not None]
    turns.callers = everybody
    found.waited += turns.waited - before
    found.longest = max(found.longest, len(path))
    order = [node.taken[-1] for node in path]
    try:
        await judge(own, calls, answers)
    except Exception as error:  # noqa: BLE001 - told with its order
        where = traceback.extract_tb(error.__traceback__)[-1].line
        found.broken.append(f"{names} from {start}, order {order}: {error!r} at {where}")
    with suppress(Refusal):  # sweeps of the next order must not meet this payment
        await grid.servers[0].payments.simulate(own.payment.reference, "FAILED", BUSINESS, by=AN_ADMIN)
    return lost
