"""What everybody in a history shares: virtual time, chance, the store, the network between them, how badly things go,
and what is told of it all."""

import asyncio
import hashlib
import selectors
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from payagg_testing.clocks import START, Chance, SeededEntropy
from payagg_testing.memory import MemoryStore

from lab.simulation.ledger import Ledger
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.domain.errors import Refusal

if TYPE_CHECKING:
    from lab.simulation.process import Life, SimulatedProcess
    from payagg.entrypoints.bootstrap import Services

R = TypeVar("R")
CLIENT_SECONDS = 60.0  # how long a client waits for an answer
SHORT_SECONDS = 5.0  # waits up to this pass in the loop's time, in which the product's own timers run


class NothingLeft(Exception):
    """Every task waits for something that no timer and no task will bring."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs on no file and no clock: sockets, threads and subprocesses are errors. Seconds begin at 0.

    `each_turn` is called once before each round of what is ready; what it raises ends the run.
    """

    _ready: "deque[asyncio.Handle]"  # asyncio's own

    def __init__(self, order: Chance, each_turn: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._seconds = 0.0
        self._order = order
        self._each_turn = each_turn
        # Coarser than what a sum of seconds can tell apart after years; otherwise a timer might never be due.
        self._clock_resolution = 1e-6
        self._selector = self  # what asyncio asks whether anything came, and how long to wait for it
        self.turns = 0

    def time(self) -> float:
        return self._seconds

    def select(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing ever comes from outside, so the whole wait passes at once."""
        self.turns += 1
        self._each_turn()
        if timeout is None:
            raise NothingLeft
        self._seconds += timeout
        if len(self._ready) > 1:
            self._order.shuffle(self._ready)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """No other thread exists to wake this loop."""


@dataclass(frozen=True)
class Faults:
    """Shares of 0 to 1 of what may go wrong, drawn anew whenever it could. A default is the worst that is drawn."""

    # A client's request to us.
    lost_request: float = 0.15
    lost_answer: float = 0.2
    # Our processes: killed at a port, killed at any turn of the loop, frozen for longer than any lease.
    crash: float = 0.03
    crash_anywhere: float = 0.004
    freeze: float = 0.05
    # The database: a transaction rolled back, one whose COMMIT had no answer.
    conflict: float = 0.1
    unknown_commit: float = 0.05
    # Our calls to providers and merchants.
    lost_call: float = 0.2
    lost_reply: float = 0.3
    slow: float = 0.3
    provider_error: float = 0.3
    # Providers' events, and merchants' answers to ours.
    event_lost: float = 0.65
    event_twice: float = 0.5
    event_late: float = 0.5
    merchant_error: float = 0.5

    @classmethod
    def of(cls, **shares: float) -> "Faults":
        """Nothing else goes wrong."""
        return cls(**{each.name: shares.get(each.name, 0.0) for each in fields(cls)})

    @classmethod
    def drawn(cls, chance: Chance) -> "Faults":
        worst = {each.name: float(each.default) for each in fields(cls)}  # type: ignore[arg-type]
        if chance.happens(0.4):
            # A few faults and no other: what they lead to is then not hidden by what comes later.
            return cls.of(**{name: worst[name] * (0.5 + chance.random()) for name in chance.sample(list(worst), 2)})
        return cls.of(**{name: most * chance.random() if chance.happens(0.5) else 0.0 for name, most in worst.items()})

    def latency(self, chance: Chance) -> float:
        """Seconds that a message travels."""
        return 4.0 + chance.random() * 8.0 if chance.happens(self.slow) else chance.random() * 0.3


class InvariantBroken(AssertionError):
    """An invariant does not hold; `name` says which."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


class Killed(BaseException):
    """The process is dead: nothing that still runs of it reaches anything."""


class Lost(Exception):
    """No answer came, or one that says nothing: the client knows neither whether it was done nor whether it was not."""


@dataclass
class WorldClock:
    """The one clock of all processes (the database's): the loop's time, and hours skipped as nothing was due."""

    loop: VirtualLoop
    skipped: float = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.loop.time() + self.skipped)


# Whose task this is: None for everybody outside the product.
LIFE: "ContextVar[Life | None]" = ContextVar("life", default=None)


class SimulatedWorld:
    """One history's surroundings; everything that is drawn comes from `seed`."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(f"{seed} world")
        self.loop = VirtualLoop(Chance(f"{seed} order"), self._each_turn)
        self.loop.set_task_factory(_owned_task)
        self.loop.set_exception_handler(self._on_loop_error)
        self.clock = WorldClock(self.loop)
        self.entropy = SeededEntropy(seed)
        self.store = MemoryStore()
        self.ledger = Ledger()
        self.faults = Faults.drawn(self.chance)
        self.processes: list[SimulatedProcess] = []
        self.people: list[asyncio.Task[None]] = []
        self.sometimes: Counter[str] = Counter()
        self.lines: list[tuple[datetime, str, str]] = []
        self.broken: InvariantBroken | None = None
        self.is_peace = self.is_over = False
        self.busy = 0  # requests and calls under way
        self.down_until = 0.0  # of the database, in the loop's time
        self.unreachable: set[str] = set()  # providers, by slug
        self.killer: Callable[[], None] = lambda: None
        self._alarms: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def tell(self, who: str, what: str) -> None:
        """A line of the timeline, and of the trace that tells whether two runs were the same."""
        self.lines.append((self.clock.now(), who, what))

    def fail(self, name: str, what: str) -> None:
        """Ends the history at the next turn of the loop; the first one stands."""
        if self.broken is None:
            self.broken = InvariantBroken(name, what)
            self.tell(name, what)

    def digest(self) -> str:
        """Of everything that happened, and of what was drawn until the end."""
        whole = hashlib.blake2b(digest_size=16)
        for at, who, what in self.lines:
            whole.update(f"{at} {who}: {what}\n".encode())
        whole.update(f"{self.loop.turns} {self.chance.random()} {self.entropy.chance()}".encode())
        return whole.hexdigest()

    async def wait(self, seconds: float) -> None:
        """Lets time pass by the clock on the wall; more than moments may be skipped when nobody is at work."""
        if seconds <= SHORT_SECONDS:
            await asyncio.sleep(seconds)
            return
        alarm: asyncio.Future[None] = self.loop.create_future()
        heappush(self._alarms, (self.clock.now() + timedelta(seconds=seconds), next(self._numbers), alarm))
        await alarm

    def next_alarm(self) -> datetime | None:
        return self._alarms[0][0] if self._alarms else None

    def ring(self) -> None:
        """Wakes whoever waited for this moment."""
        while self._alarms and self._alarms[0][0] <= self.clock.now():
            _, _, alarm = heappop(self._alarms)
            if not alarm.done():
                alarm.set_result(None)

    def spawn(self, work: Coroutine[Any, Any, R], life: "Life | None" = None) -> "asyncio.Task[R]":
        """A task of one life of a process, or of nobody in the product."""
        context = Context()
        context.run(LIFE.set, life)
        return self.loop.create_task(work, context=context)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Calls `work` whatever becomes of the caller."""
        self.loop.call_later(seconds, work, context=Context())

    def send_out(self, work: Coroutine[Any, Any, None]) -> None:
        """Somebody with an errand: the history ends only after all of these."""
        self.people.append(self.spawn(work))

    @contextmanager
    def working(self) -> Iterator[None]:
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1

    def _each_turn(self) -> None:
        if self.is_over:
            return
        if self.broken is not None:
            raise self.broken
        self.killer()

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "handle" in context:  # a callback that raised; tasks whose death nobody watched are no news
            self.fail("INV0", f"a callback raised {context.get('exception')!r}")

    async def ask(self, who: str, what: str, work: "Callable[[Services], Coroutine[Any, Any, R]]") -> R:
        """One request to whichever process, and its answer; raises Lost, or the Refusal that came."""
        with self.working():
            await asyncio.sleep(self.chance.random() * 0.02)
            life = self.chance.choice(self.processes).life
            if life is None or not life.serves or self.chance.happens(self.faults.lost_request):
                await asyncio.sleep(0.5)
                self.tell(who, f"{what}: nobody is there")
                raise Lost
            self.tell(who, f"{what} -> {life.name}")
            task = self.spawn(work(life.services), life)
            await asyncio.wait({task}, timeout=CLIENT_SECONDS)
            return self._answer(task, who, what)

    def _answer(self, task: "asyncio.Task[R]", who: str, what: str) -> R:
        if not task.done():
            self.sometimes["a client gives up waiting"] += 1
            task.cancel()
            error: BaseException | None = Lost()
        else:
            error = Lost() if task.cancelled() else task.exception()
        if self.chance.happens(self.faults.lost_answer):
            self.sometimes["an answer to a client is lost"] += 1
            error = Lost()
        if isinstance(error, Refusal):
            self.tell(who, f"{what} <- {error.code.name}")
            raise error
        if isinstance(error, Lost | Killed | Unavailable | Conflict):
            self.tell(who, f"{what} <- no answer")
            raise Lost
        if error is not None:
            self.fail("INV0", f"{what} was answered with {error!r}")
            raise Lost
        return task.result()

    async def call(self, who: str, what: str, serve: Callable[[], R]) -> R:
        """A call from the product to the outside. What was sent arrives though its sender dies; where an answer is lost
        nothing ever comes. Raises what `serve` raises."""
        faults, chance = self.faults, self.chance
        answer: asyncio.Future[R] = self.loop.create_future()
        is_heard = not chance.happens(faults.lost_call)
        is_answered = not chance.happens(faults.lost_reply)
        there, back = faults.latency(chance), faults.latency(chance)

        def arrive() -> None:
            self.busy -= 1
            try:
                result = serve()
            except Exception as error:  # noqa: BLE001 - handed to the caller
                come_back(answer.set_exception, error)
            else:
                come_back(answer.set_result, result)

        def come_back(settle: Callable[[Any], None], value: object) -> None:
            if is_answered:
                self.later(back, lambda: None if answer.done() else settle(value))
            else:
                self.tell(who, f"{what}: the answer is lost")

        if is_heard:
            self.busy += 1  # a message on its way: a skip of hours must not make it late
            self.later(there, arrive)
        else:
            self.tell(who, f"{what}: the call is lost")
        with self.working():
            return await answer

    def make_peace(self) -> None:
        """From now on nothing fails any more."""
        self.is_peace = True
        self.faults = Faults.of()
        self.down_until = 0.0
        self.unreachable.clear()
        self.killer = lambda: None
        self.tell("world", "peace")


def _owned_task(
    loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None, **more: Any
) -> "asyncio.Task[Any]":
    task = asyncio.Task(work, loop=loop, context=context, **more)
    life = LIFE.get() if context is None else context.get(LIFE)
    if life is not None:
        life.own(task)
    return task
