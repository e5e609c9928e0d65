"""Ports of webhooks: endpoints and events in the database, the queue, and a sender."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from payagg.domain.delivery import Delivery, Event
from payagg.domain.values import Environment
from payagg.domain.webhook import Subscriber, WebhookEndpoint


@dataclass(frozen=True)
class DeliveryAttemptResult:
    """The result of one HTTP attempt. `status_code` None = no answer; `error` is the reason, without secrets."""

    status_code: int | None
    error: str | None
    duration_ms: int
    retry_after: timedelta | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


# Deliveries that end without an attempt.
SWITCHED_OFF = DeliveryAttemptResult(None, "the endpoint is switched off", 0)


UNSIGNED = DeliveryAttemptResult(None, "no active endpoint has a secret to sign with", 0)


class Sender(Protocol):
    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAttemptResult:
        """One bounded POST: no redirects, checked addresses only. Never raises for what the receiver does."""


class EndpointRepository(Protocol):
    """Merchants' endpoints."""

    async def of_business(self, business_id: str) -> list[WebhookEndpoint]:
        """Of both environments, oldest first."""

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[Subscriber]]:
        """Active endpoints by business and environment, oldest first; no entry for one without any."""

    async def subscribers(self, business_id: str, environment: Environment) -> list[Subscriber]:
        """Active endpoints of that environment."""

    async def lock(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        """Locked for update."""

    async def get(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        """Not locked: reads must not wait for the queue's counters."""

    async def add(self, endpoint: WebhookEndpoint) -> None: ...

    async def save(self, endpoint: WebhookEndpoint) -> None:
        """Saves everything but the counters and `failing_since`, which the queue owns; activation and a new address
        clear the latter."""

    async def remove(self, endpoint_id: str, now: datetime) -> None:
        """Deactivates the endpoint and hides it; its row is deleted with the last of its log. Pending deliveries end as
        for a deactivated endpoint."""


class WebhookEventRepository(Protocol):
    """Events and their deliveries. A delivery row is written in the transaction of the status change."""

    async def last_id(self, business_id: str, environment: Environment) -> str | None:
        """The greatest id of the business's events there. Call under the lock of the next event's payment, so its id is
        past any cursor."""

    async def emit(self, event: Event, deliveries: Sequence[Delivery]) -> None: ...

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        """A page, newest first, and the total from counters. With `after`: strictly older than that id. An offset costs
        time by its size; `after` does not."""

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        """Locked for update. Lock the endpoint first, as the queue does."""

    async def own_delivery(self, reference: str, delivery_id: str) -> Delivery | None:
        """One to the payment's own address, locked for update."""

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        """Makes it PENDING and due now, under the same ids; counters follow."""

    async def page(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        """Past events by id, strictly after the cursor. No event is listed while a transaction that may commit an
        earlier one is open, so a cursor never skips one."""

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]: ...

    async def of_payments(self, references: Sequence[str]) -> list[Event]:
        """The events of these payments, locked."""

    async def save_bodies(self, events: Sequence[Event]) -> None: ...


class DeliveryQueue(Protocol):
    """The outbox's sending side; each call is one short transaction."""

    async def claim(
        self,
        now: datetime,
        limit: int,
        failing: int,
        lease: timedelta,
        slow: Collection[str] = (),
    ) -> list["ClaimedDelivery"]:
        """Claims due deliveries: leases them and counts an attempt. In flight in one partition are at most its
        endpoint's `concurrency` (CONCURRENCY_START without one), and one when the endpoint is failing. Claimed
        from failing and `slow` partitions are at most `failing`, chosen so none waits for ever.

        A delivery whose lease expired is claimed again under the same number of attempts, and `lost_tries` counts it.
        Poison messages are excluded.
        """

    async def claim_poison_message(self, now: datetime, lease: timedelta) -> "ClaimedDelivery | None":
        """The poison message due longest, leased as by `claim` whatever else is in flight in its partition."""

    async def finish(self, results: Sequence["DeliveryResult"]) -> None:
        """Records attempts whose token still matches. Updates counters and, unless the attempt was uncounted or the
        endpoint's address changed meanwhile, `concurrency`, `failing_since` and deactivation, with its audit entry. A
        record ends a run of lost attempts; a `lost` result is about that run alone."""

    async def release(self, claimed: Sequence["ClaimedDelivery"]) -> None:
        """Releases what a stopping worker had not started; the attempt is not counted."""

    async def oldest_due(self, now: datetime) -> datetime | None: ...

    async def due(self, now: datetime, limit: int) -> int:
        """The number of deliveries due and not leased; counted up to `limit`."""

    async def count_deactivated(self) -> int:
        """The number of deactivated endpoints."""

    async def purge(self, before: datetime, limit: int) -> int:
        """Deletes a bounded batch of ended deliveries and events older than `before`, and removed endpoints without
        deliveries."""


@dataclass(frozen=True)
class ClaimedDelivery:
    """A leased delivery with what sending needs. `secrets` are the sealed signing secrets, newest first, each with its
    endpoint id."""

    delivery: Delivery
    body: bytes
    url: str
    secrets: tuple[tuple[str, bytes], ...]
    is_lease_expired: bool = False  # another worker's lease expired before it recorded its attempt
    is_failing: bool = False  # the partition was failing or slow at the claim


@dataclass(frozen=True)
class DeliveryResult:
    """The result of one attempt: `retry_at` None ends the delivery, `deactivate` deactivates the endpoint; an
    `uncounted` one failed through us and is no evidence of the endpoint. `lost`: no attempt was made; those before were
    lost with their workers."""

    claimed: ClaimedDelivery
    sent: DeliveryAttemptResult
    at: datetime
    retry_at: datetime | None
    deactivate: bool = False
    uncounted: bool = False
    lost: bool = False
