"""Sends the outbox: claim, sign, send, record. Every attempt is leased, so a killed worker loses nothing."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from payagg.application.ports.outside import Clock, Conflict, Entropy, Unavailable, Vault
from payagg.application.ports.store import Store
from payagg.application.ports.webhooks import ClaimedDelivery, DeliveryAttemptResult, DeliveryResult, Sender
from payagg.application.telemetry import count, span, trace_of
from payagg.application.webhooks.slow_partitions import SlowPartitions
from payagg.domain.delivery import delay_after, due_after_loss
from payagg.domain.signing import keys_that_sign, signed_headers
from payagg.domain.webhook import CONCURRENCY_START, secret_context, signing_keys

CONCURRENT = 400  # concurrent attempts in one process
FAILING_MAX = 200  # of them to failing endpoints and slow partitions: the others have the rest
LEASE = timedelta(seconds=45)  # longer than any attempt and its record
POLL_SECONDS = 0.25
GATHER_SECONDS = 0.01  # results within this time are recorded in one statement
RECORD_MAX = 500
GRACE_SECONDS = 7.0  # for running attempts after a stop signal
# Poison messages: polled this often, sent one by one for this long, then paused for three times as long as that took,
# the wait for running attempts included.
SUSPECTS_EVERY = 1.0
SUSPECTS_SECONDS = 2.0
SUSPECTS_PAUSE = 3
ALONE_WITHIN = 20.0  # seconds for other attempts to end and be recorded; with one attempt within the lease
GONE = 410
LOST = DeliveryAttemptResult(None, "the worker died before it recorded its try", 0)
GIVEN_UP = DeliveryAttemptResult(None, "given up: earlier tries were never recorded", 0)
UNOPENED = DeliveryAttemptResult(None, "the signing secret cannot be opened", 0)
BACK_OFF_SECONDS = 1.0
BACK_OFF_MAX_SECONDS = 15.0
KEYS_CACHED_MAX = 50_000
_log = structlog.get_logger("payagg.dispatcher")


@dataclass
class Dispatcher:
    """The sending loop of one process; several processes may run one each."""

    store: Store
    clock: Clock
    entropy: Entropy
    vault: Vault
    sender: Sender
    lease: timedelta = LEASE
    poll_seconds: float = POLL_SECONDS
    _keys: dict[tuple[str, bytes], list[bytes]] = field(default_factory=dict, init=False, repr=False)
    _results: list[DeliveryResult] = field(default_factory=list, init=False)
    # Attempts under way, the oldest first, each with its beginning on the event loop's clock.
    _trying: dict["asyncio.Task[None]", tuple[ClaimedDelivery, float]] = field(default_factory=dict, init=False)
    _slow: SlowPartitions = field(default_factory=SlowPartitions, init=False)
    _is_full: bool = field(default=False, init=False)  # the last claim filled all free slots,
    _crowded: set[str] = field(default_factory=set, init=False)  # and these partitions have all they may have
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _resulted: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _recorded: asyncio.Event = field(default_factory=asyncio.Event, init=False)  # no result waits to be recorded
    _suspects_at: float = field(default=0.0, init=False)  # on the event loop's clock

    async def run(self, stop: asyncio.Event) -> None:
        """Sends until `stop`, then finishes running attempts, or releases them after GRACE_SECONDS."""
        recorder = asyncio.create_task(self._record_results())
        try:
            await self._claim_until(stop)
            await self._wind_down()
        finally:
            recorder.cancel()
            await asyncio.wait({recorder})
            for task in self._trying:
                task.cancel()
        await self._record()

    async def run_once(self) -> int:
        """Claims, sends and records one batch, then one poison message; the number of attempts. For tests and tools."""
        claimed = await self._claim(CONCURRENT)
        await asyncio.gather(*(self._try(one) for one in claimed))
        await self._record()
        suspect = await self._poison_message()
        if suspect is not None:
            await self._try(suspect)
            await self._record()
        return len(claimed) + (suspect is not None)

    async def _claim_until(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        back_off = BACK_OFF_SECONDS
        try:
            while not stop.is_set():
                self._woken.clear()
                wait, room = self.poll_seconds * (0.8 + 0.4 * self.entropy.chance()), 0
                try:
                    if _time() >= self._suspects_at:
                        await self._try_poison_messages(stopping)
                    room = CONCURRENT - len(self._trying)
                    claimed = await self._claim(room) if room else []
                    count("worker_sweeps", "deliveries")
                    back_off = BACK_OFF_SECONDS
                except Exception as error:  # noqa: BLE001 - one loop's defect must not stop the worker's sweeps
                    if isinstance(error, Unavailable | Conflict):
                        _log.warning("cannot claim deliveries", reason=str(error))
                    else:
                        _log.error("cannot claim deliveries", trace=trace_of(error))
                    claimed, wait, back_off = [], back_off, min(back_off * 2, BACK_OFF_MAX_SECONDS)
                if stop.is_set():
                    await self._release(claimed)
                    return
                for one in claimed:
                    self._begin(one)
                self._is_full, self._crowded = len(claimed) >= room, self._crowded_partitions()
                if len(claimed) < room or not room:
                    waking = asyncio.create_task(self._woken.wait())
                    await asyncio.wait({stopping, waking}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                    waking.cancel()
        finally:
            stopping.cancel()

    async def _claim(self, room: int) -> list[ClaimedDelivery]:
        slow = self._slow.current((one.delivery.partition, began) for one, began in self._trying.values())
        failing = FAILING_MAX - sum(
            one.is_failing or one.delivery.partition in slow for one, _ in self._trying.values()
        )
        return await self.store.queue.claim(self.clock.now(), room, failing, self.lease, slow)

    async def _poison_message(self) -> ClaimedDelivery | None:
        return await self.store.queue.claim_poison_message(self.clock.now(), self.lease)

    async def _try_poison_messages(self, stopping: "asyncio.Task[bool]") -> None:
        """Sends poison messages one by one while no other attempt runs here: if one kills this worker too, no other
        delivery is lost or blamed."""
        began = _time()
        self._suspects_at = began + SUSPECTS_EVERY
        one = await self._poison_message()
        if one is not None and not await self._is_alone(stopping):
            await self._release([one])
            one = None
        until = _time() + SUSPECTS_SECONDS
        while one is not None:
            await asyncio.wait({self._begin(one), stopping}, return_when=asyncio.FIRST_COMPLETED)
            is_over = _time() >= until or not await self._is_alone(stopping)
            one = None if is_over else await self._poison_message()
        ended = _time()
        self._suspects_at = max(self._suspects_at, ended + SUSPECTS_PAUSE * (ended - began))

    async def _is_alone(self, stopping: "asyncio.Task[bool]") -> bool:
        """Waits until no attempt runs and all are recorded; False when that takes too long, or after `stop`."""
        waiting = asyncio.create_task(self._all_recorded())
        await asyncio.wait({waiting, stopping}, timeout=ALONE_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return not (self._trying or self._results or stopping.done())

    async def _all_recorded(self) -> None:
        if self._trying:
            await asyncio.wait(set(self._trying))
        while self._results:
            self._recorded.clear()
            await self._recorded.wait()

    def _begin(self, one: ClaimedDelivery) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._try(one))
        self._trying[task] = one, _time()
        task.add_done_callback(self._on_attempt_end)
        return task

    def _crowded_partitions(self) -> set[str]:
        """Those with as many running attempts as one has at first."""
        counts = Counter(one.delivery.partition for one, _ in self._trying.values())
        return {partition for partition, under_way in counts.items() if under_way >= CONCURRENCY_START}

    def _on_attempt_end(self, task: "asyncio.Task[None]") -> None:
        one, began = self._trying.pop(task)
        self._slow.note_end(one.delivery.partition, began)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The lease brings the delivery back; a defect here must not stop the others.
            _log.error("a delivery try broke", trace=trace_of(error))

    async def _wind_down(self) -> None:
        if self._trying:
            await asyncio.wait(set(self._trying), timeout=GRACE_SECONDS)
        left = list(self._trying.items())
        for task, _ in left:
            task.cancel()
        # Whether they arrived is unknown, so they are sent again, under the same ids; a stop uses up no attempt of the
        # schedule.
        await self._release([one for _, (one, _) in left])

    async def _release(self, claimed: list[ClaimedDelivery]) -> None:
        if claimed:
            try:
                await self.store.queue.release(claimed)
            except (Unavailable, Conflict):
                _log.warning("could not hand deliveries back; their lease will", deliveries=len(claimed))

    async def _try(self, one: ClaimedDelivery) -> None:
        now = self.clock.now()
        if one.is_lease_expired:
            count("delivery_leases_lapsed")
            if one.delivery.is_poison:
                self._note(_postpone(one, now))
                return
        try:
            keys = keys_that_sign(one.secrets, self._unseal)
        except ValueError:
            # Without the encryption key nothing can be signed; an operator can still bring the key back.
            self._note(replace(self._finish(one, UNOPENED, now), uncounted=True))
            return
        headers = signed_headers(keys, one.delivery.event_id, int(now.timestamp()), one.body)
        with span("delivery", {"payagg.environment": one.delivery.environment.value}):
            sent = await self.sender.send(one.url, headers, one.body)
        self._note(self._finish(one, sent, self.clock.now()))

    def _note(self, result: DeliveryResult) -> None:
        self._results.append(result)
        self._resulted.set()

    def _unseal(self, endpoint_id: str, sealed: bytes) -> list[bytes]:
        keys = self._keys.get((endpoint_id, sealed))
        if keys is None:
            if len(self._keys) >= KEYS_CACHED_MAX:
                self._keys.clear()
            keys = self._keys[endpoint_id, sealed] = signing_keys(self.vault.open(sealed, secret_context(endpoint_id)))
        return keys

    def _finish(self, one: ClaimedDelivery, sent: DeliveryAttemptResult, at: datetime) -> DeliveryResult:
        count("delivery_tries", _result_of(sent))
        if sent.is_accepted:
            return DeliveryResult(one, sent, at, retry_at=None)
        if sent.status_code == GONE:
            return DeliveryResult(one, sent, at, retry_at=None, deactivate=True)
        delivery = one.delivery
        delay = delay_after(delivery.environment, delivery.attempts, self.entropy.chance(), sent.retry_after)
        return DeliveryResult(one, sent, at, retry_at=at + delay if delay is not None else None)

    async def _record_results(self) -> None:
        back_off = BACK_OFF_SECONDS
        while True:
            await self._resulted.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._resulted.clear()
            try:
                await self._record()
                back_off = BACK_OFF_SECONDS
            except (Unavailable, Conflict) as error:
                # Results are kept: only they show what merchants received.
                _log.warning("cannot record deliveries", reason=str(error), waiting=len(self._results))
                await asyncio.sleep(back_off)
                back_off = min(back_off * 2, BACK_OFF_MAX_SECONDS)
                self._resulted.set()
            except Exception as error:  # noqa: BLE001 - what the database refuses once it refuses again
                # Dropped, so sent again when their leases expire: a dead recorder would repeat everything.
                _log.error("deliveries cannot be recorded", trace=trace_of(error))
                self._forget(RECORD_MAX)
                self._resulted.set()

    async def _record(self) -> None:
        while self._results:
            await self._record_batch()

    async def _record_batch(self) -> None:
        batch = self._results[:RECORD_MAX]
        await self.store.queue.finish(batch)
        self._forget(len(batch))
        # A claim costs a statement, so the next one waits for the poll, unless more may be due in the freed slots.
        if self._is_full or any(result.claimed.delivery.partition in self._crowded for result in batch):
            self._woken.set()

    def _forget(self, results: int) -> None:
        del self._results[:results]
        if not self._results:
            self._recorded.set()


def _postpone(one: ClaimedDelivery, now: datetime) -> DeliveryResult:
    """Instead of an attempt: several workers died during its attempts."""
    due = due_after_loss(one.delivery, now)
    lost, delivery_id = one.delivery.lost_tries, one.delivery.id
    _log.warning("a delivery's workers keep dying", delivery=delivery_id, deaths=lost, next_attempt_at=str(due))
    return DeliveryResult(one, GIVEN_UP if due is None else LOST, now, retry_at=due, lost=due is not None)


def _result_of(sent: DeliveryAttemptResult) -> str:
    if sent.status_code is None:
        return "no answer"
    return f"{sent.status_code // 100}xx" if sent.status_code < 600 else "other"


def _time() -> float:
    """Seconds on the event loop's clock, which a simulation sets."""
    return asyncio.get_running_loop().time()
