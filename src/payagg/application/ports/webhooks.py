"""What deliveries of webhooks need: endpoints and events in the database, the queue, and a sender."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from payagg.domain.values import Environment
from payagg.domain.webhook import Delivery, Event, WebhookEndpoint


@dataclass(frozen=True)
class DeliveryAttemptResult:
    """What came of one HTTP try to a merchant. `status_code` None = no answer; `error` says why, without secrets."""

    status_code: int | None
    error: str | None
    duration_ms: int
    retry_after: timedelta | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


# Deliveries that end without a try.
SWITCHED_OFF = DeliveryAttemptResult(None, "the endpoint is switched off", 0)


UNSIGNED = DeliveryAttemptResult(None, "no active endpoint has a secret to sign with", 0)


class Sender(Protocol):
    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str, is_test: bool = False
    ) -> DeliveryAttemptResult:
        """One bounded POST: no redirects, checked addresses only. Never raises for what the receiver does. What is
        shared is budgeted by `owner`, a business's id, and for tests apart."""


class EndpointRepository(Protocol):
    """Merchants' endpoints."""

    async def of_business(self, business_id: str) -> list[WebhookEndpoint]:
        """Of both environments, oldest first."""

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[WebhookEndpoint]]:
        """Active endpoints of each business and environment, oldest first; nothing for one that has none."""

    async def subscribers(self, business_id: str, environment: Environment) -> list[WebhookEndpoint]:
        """Active endpoints of that environment."""

    async def lock(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        """Locked for update."""

    async def get(self, business_id: str, endpoint_id: str) -> WebhookEndpoint | None:
        """Not locked: for reads, which must not wait for the queue's counters."""

    async def add(self, endpoint: WebhookEndpoint) -> None: ...

    async def save(self, endpoint: WebhookEndpoint) -> None:
        """Everything but the counters and `failing_since`, which the queue moves; activation and a new address
        clear the latter."""

    async def remove(self, endpoint_id: str, now: datetime) -> None:
        """Switched off, and shown by nothing here any more; it goes with the last of its log. What is still to be
        delivered ends as it does where an endpoint is switched off."""


class WebhookEventRepository(Protocol):
    """Events and their deliveries. A delivery row is written with the status change that caused it."""

    async def last_id(self, business_id: str, environment: Environment) -> str | None:
        """The greatest id of the business's events there. Call under the lock of the payment that the next one tells
        of: no event that a cursor may stand at already is missed then."""

    async def emit(self, event: Event, deliveries: Sequence[Delivery]) -> None: ...

    async def deliveries(
        self, endpoint_id: str, offset: int, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], int]:
        """A page, newest first, and the total from counters. Strictly older than the id `after` where it is given;
        what stands before the offset costs time, what stands before `after` does not."""

    async def delivery(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        """Locked for update. Lock its endpoint first, as the queue does."""

    async def own_delivery(self, reference: str, delivery_id: str) -> Delivery | None:
        """One to the payment's own address, locked for update."""

    async def redeliver(self, delivery: Delivery, now: datetime) -> None:
        """PENDING again and due now, under the same ids; counters follow."""

    async def page(self, business_id: str, environment: Environment, after: str | None, limit: int) -> list[Event]:
        """Past events in the order of their ids, strictly after the cursor. None is shown while a transaction that
        may still commit an earlier one is open, so a cursor never passes an event by."""

    async def of_payment(self, reference: str) -> tuple[list[Event], list[Delivery]]: ...

    async def of_payments(self, references: Sequence[str]) -> list[Event]:
        """The events of these payments, locked."""

    async def save_bodies(self, events: Sequence[Event]) -> None: ...


class DeliveryQueue(Protocol):
    """The outbox's sending side; each call is its own short transaction."""

    async def claim(
        self, now: datetime, limit: int, per_partition: int, failing: int, lease: timedelta
    ) -> list["ClaimedDelivery"]:
        """Due deliveries, leased and counted as a try: in flight in one partition as many as its endpoint's
        `concurrency` (CONCURRENCY_START where there is none) and `per_partition` allow, one where the endpoint is
        failing, and at most `failing` of such, chosen so that none waits for ever.

        A delivery whose lease ran out is claimed again under the same number of tries, and `lost_tries` counts it.
        None that waits as a suspect is among them."""

    async def claim_poison_message(self, now: datetime, lease: timedelta) -> "ClaimedDelivery | None":
        """The suspect that has been due longest, leased as by `claim` whatever else is in flight in its partition."""

    async def finish(self, results: Sequence["DeliveryResult"]) -> None:
        """Records tries whose token still matches; moves counters and, unless the try was uncounted or the endpoint's
        address was changed meanwhile, `concurrency`, `failing_since` and deactivation, which goes into the audit
        trail. A record ends a run of lost tries; a result that is `lost` tells of that run alone."""

    async def release(self, claimed: Sequence["ClaimedDelivery"]) -> None:
        """Hands back what a stopping worker had not started; the try is not counted."""

    async def oldest_due(self, now: datetime) -> datetime | None: ...

    async def due(self, now: datetime, limit: int) -> int:
        """How many deliveries are due and in nobody's hands; counted up to `limit`."""

    async def count_deactivated(self) -> int:
        """How many endpoints are switched off."""

    async def purge(self, before: datetime, limit: int) -> int:
        """Deletes ended deliveries and events older than `before`, and removed endpoints that have no delivery left,
        in a bounded batch."""


@dataclass(frozen=True)
class ClaimedDelivery:
    """A leased delivery with what sending needs. `secrets` are the sealed signing secrets, newest first, with the
    endpoint id each was sealed for."""

    delivery: Delivery
    body: bytes
    url: str
    secrets: tuple[tuple[str, bytes], ...]
    is_lease_expired: bool = False  # another worker's lease ran out before it recorded its try
    is_failing: bool = False  # the endpoint was, when this was claimed


@dataclass(frozen=True)
class DeliveryResult:
    """The result of one try: `retry_at` None ends the delivery, `deactivate` switches the endpoint off, and one that is
    `uncounted` failed through us and says nothing of the endpoint. Where `lost` none was made: the ones before were
    lost with their workers."""

    claimed: ClaimedDelivery
    sent: DeliveryAttemptResult
    at: datetime
    retry_at: datetime | None
    deactivate: bool = False
    uncounted: bool = False
    lost: bool = False
