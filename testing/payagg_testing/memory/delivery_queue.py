"""The outbox's sending side in memory."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

from payagg.application.accounts.audit import switched_off
from payagg.application.ports.webhooks import (
    SWITCHED_OFF,
    UNSIGNED,
    ClaimedDelivery,
    DeliveryAttemptResult,
    DeliveryResult,
)
from payagg.domain.delivery import Delivery, DeliveryStatus
from payagg.domain.payment import SEQUENCE_MAX
from payagg.domain.values import CLOCK_SLACK
from payagg.domain.webhook import ANSWERS_WELL, CONCURRENCY_MAX, CONCURRENCY_START, DEACTIVATE_AFTER, WebhookEndpoint

NEVER = datetime.max.replace(tzinfo=UTC)
if TYPE_CHECKING:
    from payagg_testing.memory.store import MemoryStore


class MemoryDeliveryQueue:
    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._tokens = count(1)
        self._turns: dict[str, int] = {}  # the last attempt in each failing or slow partition

    async def claim(
        self,
        now: datetime,
        limit: int,
        failing: int,
        lease: timedelta,
        slow: Collection[str] = (),
    ) -> list[ClaimedDelivery]:
        state = self._store.state
        claimed: list[ClaimedDelivery] = []
        async with self._store.begin():
            pending = [d for d in state.deliveries.values() if d.status is DeliveryStatus.PENDING]
            longest = now + lease + CLOCK_SLACK
            in_flight = Counter(d.partition for d in pending if _is_leased(d, now, longest))
            due = [d for d in pending if d.next_attempt_at is not None and d.next_attempt_at <= now]
            for delivery in sorted(due, key=lambda d: (self._turns.get(d.partition, 0), d.next_attempt_at, d.id)):
                if _is_leased(delivery, now, longest):
                    continue
                if delivery.is_poison and delivery.token is None:
                    continue
                endpoint = state.endpoints.get(delivery.endpoint_id or "")
                is_failing = delivery.partition in slow or (endpoint is not None and endpoint.failing_since is not None)
                secrets = self._secrets(delivery, endpoint, now)
                if endpoint is not None and not endpoint.is_active:
                    self._end(delivery, SWITCHED_OFF)
                elif not secrets:
                    self._end(delivery, UNSIGNED)
                elif len(claimed) < limit and in_flight[delivery.partition] < _most(endpoint):
                    if is_failing and sum(one.is_failing for one in claimed) >= failing:
                        continue
                    in_flight[delivery.partition] += 1
                    if is_failing:
                        self._turns[delivery.partition] = next(self._tokens)
                    else:
                        self._turns.pop(delivery.partition, None)
                    claimed.append(replace(self._lease(delivery, now + lease, now, secrets), is_failing=is_failing))
        return claimed

    async def claim_poison_message(self, now: datetime, lease: timedelta) -> ClaimedDelivery | None:
        async with self._store.begin():
            waiting = [d for d in self._store.state.deliveries.values() if d.is_poison and d.token is None]
            due = [d for d in waiting if d.next_attempt_at is not None and d.next_attempt_at <= now]
            for delivery in sorted(due, key=lambda d: (d.next_attempt_at, d.id)):
                endpoint = self._store.state.endpoints.get(delivery.endpoint_id or "")
                secrets = self._secrets(delivery, endpoint, now)
                if endpoint is not None and not endpoint.is_active:
                    self._end(delivery, SWITCHED_OFF)
                elif not secrets:
                    self._end(delivery, UNSIGNED)
                else:
                    return self._lease(delivery, now + lease, now, secrets)
        return None

    def _lease(
        self, delivery: Delivery, until: datetime, now: datetime, secrets: tuple[tuple[str, bytes], ...]
    ) -> ClaimedDelivery:
        state, is_lapsed = self._store.state, delivery.token is not None
        endpoint = state.endpoints.get(delivery.endpoint_id or "")
        leased = state.deliveries[delivery.id] = replace(
            delivery,
            attempts=min(delivery.attempts + (not is_lapsed and not delivery.lost_tries), SEQUENCE_MAX),
            lost_tries=delivery.lost_tries + is_lapsed,
            lease_until=until,
            token=str(next(self._tokens)),
            last_attempt_at=now,
        )
        body = state.events[delivery.reference, delivery.sequence].body
        url = endpoint.url if endpoint is not None else delivery.url or ""
        is_failing = endpoint is not None and endpoint.failing_since is not None
        return ClaimedDelivery(leased, body, url, secrets, is_lapsed, is_failing)

    async def finish(self, results: Sequence[DeliveryResult]) -> None:
        async with self._store.begin() as tx:
            good, slow, bad = Counter[str](), set[str](), set[str]()
            for result in results:
                delivery = self._store.state.deliveries.get(result.claimed.delivery.id)
                if delivery is None or delivery.token is None or delivery.token != result.claimed.delivery.token:
                    continue
                self._end(delivery, result.sent, result.retry_at, None if result.lost else result.at, lost=result.lost)
                endpoint = self._store.state.endpoints.get(delivery.endpoint_id or "")
                # An attempt at an address changed since is no evidence of the present endpoint.
                is_current = endpoint is not None and endpoint.url == result.claimed.url
                if endpoint is not None and is_current and not (result.uncounted or result.lost):
                    after = self._store.state.endpoints[endpoint.id] = _after(endpoint, result)
                    if endpoint.is_active and not after.is_active:
                        await tx.audit.add(switched_off(result, endpoint.business_id))
                    is_quick = timedelta(milliseconds=result.sent.duration_ms) <= ANSWERS_WELL
                    if not (result.sent.is_accepted and is_quick):
                        (slow if result.sent.is_accepted else bad).add(endpoint.id)
                    good[endpoint.id] += result.sent.is_accepted and is_quick
            for endpoint_id, number in good.items():
                endpoint = self._store.state.endpoints[endpoint_id]
                now = endpoint.concurrency
                after_all = concurrency_after(now, good=number, is_bad=endpoint_id in bad, is_slow=endpoint_id in slow)
                self._store.state.endpoints[endpoint_id] = replace(endpoint, concurrency=after_all)

    async def release(self, claimed: Sequence[ClaimedDelivery]) -> None:
        async with self._store.begin():
            for one in claimed:
                delivery = self._store.state.deliveries.get(one.delivery.id)
                if delivery is not None and delivery.token == one.delivery.token:
                    attempts = delivery.attempts - (not delivery.lost_tries)
                    freed = replace(delivery, attempts=attempts, lease_until=None, token=None)
                    self._store.state.deliveries[delivery.id] = freed

    async def oldest_due(self, now: datetime) -> datetime | None:
        return min(self._due(now), default=None)

    async def due(self, now: datetime, limit: int) -> int:
        return min(len(self._due(now)), limit)

    def _due(self, now: datetime) -> list[datetime]:
        pending = [d for d in self._store.state.deliveries.values() if d.status is DeliveryStatus.PENDING]
        free = [d.next_attempt_at for d in pending if d.next_attempt_at and not _is_leased(d, now)]
        return [at for at in free if at <= now]

    async def count_deactivated(self) -> int:
        state = self._store.state
        return sum(not one.is_active and one.id not in state.removed for one in state.endpoints.values())

    async def purge(self, before: datetime, limit: int) -> int:
        state = self._store.state
        async with self._store.begin():
            ended = [d for d in state.deliveries.values() if d.status is not DeliveryStatus.PENDING]
            old = [d for d in ended if d.created_at < before][:limit]
            for delivery in old:
                del state.deliveries[delivery.id]
            open_events = {d.event_id for d in state.deliveries.values() if d.status is DeliveryStatus.PENDING}
            gone = [k for k, e in state.events.items() if e.created_at < before and e.id not in open_events][:limit]
            for key in gone:
                del state.events[key]
            logged = {delivery.endpoint_id for delivery in state.deliveries.values()}
            emptied = [endpoint_id for endpoint_id in state.removed if endpoint_id not in logged][:limit]
            for endpoint_id in emptied:
                del state.removed[endpoint_id], state.endpoints[endpoint_id]
        return len(old) + len(gone) + len(emptied)

    def _secrets(
        self, delivery: Delivery, endpoint: WebhookEndpoint | None, now: datetime
    ) -> tuple[tuple[str, bytes], ...]:
        if delivery.endpoint_id is not None:
            signers = [endpoint] if endpoint is not None else []
        else:
            every = self._store.state.endpoints.values()
            own = [e for e in every if e.business_id == delivery.business_id and e.is_active]
            signers = [e for e in own if e.environment is delivery.environment]
        return tuple((signer.id, sealed) for signer in signers for sealed in signer.signing_secrets(now))

    def _end(
        self,
        delivery: Delivery,
        sent: DeliveryAttemptResult,
        retry_at: datetime | None = None,
        at: datetime | None = None,
        *,
        lost: bool = False,
    ) -> None:
        status = DeliveryStatus.DELIVERED if sent.is_accepted else DeliveryStatus.FAILED
        if retry_at is not None:
            status = DeliveryStatus.PENDING
        state = self._store.state
        state.deliveries[delivery.id] = replace(
            delivery,
            status=status,
            next_attempt_at=retry_at,
            lease_until=None,
            token=None,
            last_status_code=sent.status_code,
            last_error=sent.error,
            duration_ms=sent.duration_ms if at is not None else delivery.duration_ms,
            last_attempt_at=at or delivery.last_attempt_at,
            lost_tries=delivery.lost_tries if lost else 0,
        )
        endpoint = state.endpoints.get(delivery.endpoint_id or "")
        if endpoint is not None:
            state.endpoints[endpoint.id] = replace(
                endpoint,
                successful=endpoint.successful + (status is DeliveryStatus.DELIVERED),
                failed=endpoint.failed + (status is DeliveryStatus.FAILED),
            )


def _most(endpoint: WebhookEndpoint | None) -> int:
    if endpoint is None:
        return CONCURRENCY_START
    return 1 if endpoint.failing_since is not None else endpoint.concurrency


def _is_leased(delivery: Delivery, now: datetime, longest: datetime = NEVER) -> bool:
    return delivery.lease_until is not None and now < delivery.lease_until <= longest


def _after(endpoint: WebhookEndpoint, result: DeliveryResult) -> WebhookEndpoint:
    """The endpoint after one attempt: a success ends a run of failures, a run of DEACTIVATE_AFTER deactivates it."""
    if result.sent.is_accepted:
        return replace(endpoint, failing_since=None)
    since = endpoint.failing_since or result.at
    hopeless = result.deactivate or result.at - since >= DEACTIVATE_AFTER
    return replace(endpoint, failing_since=since, is_active=endpoint.is_active and not hopeless)


def concurrency_after(concurrency: int, *, good: int, is_bad: bool, is_slow: bool = False) -> int:
    """The endpoint's concurrency after results: plus one for each good answer, halved when one failed, and when one was
    accepted slowly, though not below what it began with."""
    if is_bad:
        return max(1, concurrency // 2)
    if is_slow:
        return max(min(concurrency, CONCURRENCY_START), concurrency // 2)
    return min(CONCURRENCY_MAX, concurrency + good)
