"""Sending what the outbox holds: claim, sign, send, record. Every try is leased, so a killed worker loses nothing."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from payagg.application.counters import count
from payagg.application.ports import (
    ClaimedDelivery,
    Clock,
    Conflict,
    DeliveryResult,
    Entropy,
    Sender,
    Store,
    TryResult,
    Unavailable,
    Vault,
)
from payagg.domain.signing import signed_headers
from payagg.domain.webhook import CONCURRENCY_MAX, CONCURRENCY_START, RETENTION, SCHEDULE, delay_after, secret_context

CONCURRENT = 400  # tries under way at once in one process
FAILING_MAX = 200  # of them to endpoints that are failing: however many are dead, the others have the rest
LEASE = timedelta(seconds=45)  # longer than any try and its record
POLL_SECONDS = 0.25
GATHER_SECONDS = 0.01  # results that come within this are recorded in one statement
RECORD_MAX = 500
GRACE_SECONDS = 7.0  # for tries under way when told to stop
GONE = 410
GIVEN_UP = TryResult(None, "given up: earlier tries were never recorded", 0)
UNOPENED = TryResult(None, "the signing secret cannot be opened", 0)
STOPPED = TryResult(None, "the worker stopped", 0)
BACK_OFF_SECONDS = 1.0
BACK_OFF_MAX_SECONDS = 15.0
KEYS_CACHED_MAX = 50_000
PURGE_BATCH = 1_000
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
    _keys: dict[tuple[str, bytes], bytes] = field(default_factory=dict, init=False, repr=False)
    _results: list[DeliveryResult] = field(default_factory=list, init=False)
    _trying: dict["asyncio.Task[None]", ClaimedDelivery] = field(default_factory=dict, init=False)
    _is_full: bool = field(default=False, init=False)  # as of the last claim: it took all there was room for,
    _crowded: set[str] = field(default_factory=set, init=False)  # and these partitions may have as many as they get
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _resulted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self, stop: asyncio.Event) -> None:
        """Sends until `stop`, then finishes what is under way, or hands it back after GRACE_SECONDS."""
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
        """Claims and sends one batch and records it; the number of tries. For tests and tools."""
        claimed = await self._claimed(CONCURRENT)
        await asyncio.gather(*(self._try(one) for one in claimed))
        await self._record()
        return len(claimed)

    async def purge(self) -> int:
        """Deletes a bounded batch of deliveries and events past their retention; 0 when there is nothing left."""
        return await self.store.queue.purge(self.clock.now() - RETENTION, PURGE_BATCH)

    async def _claim_until(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        back_off = BACK_OFF_SECONDS
        try:
            while not stop.is_set():
                self._woken.clear()
                wait = self.poll_seconds * (0.8 + 0.4 * self.entropy.chance())
                room = CONCURRENT - len(self._trying)
                try:
                    claimed = await self._claimed(room) if room else []
                    back_off = BACK_OFF_SECONDS
                except (Unavailable, Conflict) as error:
                    _log.warning("cannot claim deliveries", reason=str(error))
                    claimed, wait, back_off = [], back_off, min(back_off * 2, BACK_OFF_MAX_SECONDS)
                if stop.is_set():
                    await self._release(claimed)
                    return
                for one in claimed:
                    task = asyncio.create_task(self._try(one))
                    self._trying[task] = one
                    task.add_done_callback(self._tried)
                self._is_full, self._crowded = len(claimed) >= room, self._lanes_with(CONCURRENCY_START)
                if len(claimed) < room or not room:
                    waking = asyncio.create_task(self._woken.wait())
                    await asyncio.wait({stopping, waking}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                    waking.cancel()
        finally:
            stopping.cancel()

    async def _claimed(self, room: int) -> list[ClaimedDelivery]:
        failing = FAILING_MAX - sum(one.is_failing for one in self._trying.values())
        return await self.store.queue.claim(self.clock.now(), room, CONCURRENCY_MAX, failing, self.lease)

    def _lanes_with(self, tries: int) -> set[str]:
        """The partitions in which so many tries are under way."""
        counts = Counter(one.delivery.partition for one in self._trying.values())
        return {partition for partition, under_way in counts.items() if under_way >= tries}

    def _tried(self, task: "asyncio.Task[None]") -> None:
        self._trying.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The lease brings the delivery back; a defect here must not stop the others.
            _log.error("a delivery try broke", error=type(error).__name__)

    async def _wind_down(self) -> None:
        if self._trying:
            await asyncio.wait(set(self._trying), timeout=GRACE_SECONDS)
        now = self.clock.now()
        for task, one in list(self._trying.items()):
            task.cancel()
            # Whether it arrived is not known, so it is tried again, under the same id.
            self._results.append(DeliveryResult(one, STOPPED, now, retry_at=now, blameless=True))

    async def _release(self, claimed: list[ClaimedDelivery]) -> None:
        if claimed:
            try:
                await self.store.queue.release(claimed)
            except (Unavailable, Conflict):
                _log.warning("could not hand deliveries back; their lease will", deliveries=len(claimed))

    async def _try(self, one: ClaimedDelivery) -> None:
        now = self.clock.now()
        if one.is_lease_expired and one.delivery.attempts > len(SCHEDULE[one.delivery.environment]):
            # Tries that never came to be recorded: whatever kills the workers must not be repeated for ever.
            self._note(DeliveryResult(one, GIVEN_UP, now, retry_at=None))
            return
        try:
            keys = [self._opened(endpoint_id, sealed) for endpoint_id, sealed in one.secrets]
        except ValueError:
            # Without the encryption key nothing can be signed; an operator can still bring the key back.
            self._note(replace(self._finished(one, UNOPENED, now), blameless=True))
            return
        headers = signed_headers(keys, one.delivery.event_id, int(now.timestamp()), one.body)
        sent = await self.sender.send(one.url, headers, one.body)
        self._note(self._finished(one, sent, self.clock.now()))

    def _note(self, result: DeliveryResult) -> None:
        self._results.append(result)
        self._resulted.set()

    def _opened(self, endpoint_id: str, sealed: bytes) -> bytes:
        key = self._keys.get((endpoint_id, sealed))
        if key is None:
            if len(self._keys) >= KEYS_CACHED_MAX:
                self._keys.clear()
            key = self._keys[endpoint_id, sealed] = self.vault.open(sealed, secret_context(endpoint_id))
        return key

    def _finished(self, one: ClaimedDelivery, sent: TryResult, at: datetime) -> DeliveryResult:
        count("delivery_tries", _result_of(sent))
        if one.is_lease_expired:
            count("delivery_leases_lapsed")
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
                while self._results:
                    await self._record_batch()
                back_off = BACK_OFF_SECONDS
            except (Unavailable, Conflict) as error:
                # Results are kept: they hold the truth about what merchants received.
                _log.warning("cannot record deliveries", reason=str(error), waiting=len(self._results))
                await asyncio.sleep(back_off)
                back_off = min(back_off * 2, BACK_OFF_MAX_SECONDS)
                self._resulted.set()
            except Exception as error:  # noqa: BLE001 - what the database refuses now it will refuse again
                # Dropped, and so tried again when their leases run out: a recorder that died would repeat everything.
                _log.error("deliveries cannot be recorded", error=type(error).__name__)
                del self._results[:RECORD_MAX]
                self._resulted.set()

    async def _record(self) -> None:
        while self._results:
            await self._record_batch()

    async def _record_batch(self) -> None:
        batch = self._results[:RECORD_MAX]
        await self.store.queue.finish(batch)
        del self._results[: len(batch)]
        # A claim has its price, so the next one waits for the poll, unless more may be due behind what has ended now.
        if self._is_full or any(result.claimed.delivery.partition in self._crowded for result in batch):
            self._woken.set()


_CLASSES: Final = {2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}


def _result_of(sent: TryResult) -> str:
    return "no answer" if sent.status_code is None else _CLASSES.get(sent.status_code // 100, "other")
