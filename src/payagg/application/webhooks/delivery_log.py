"""What was sent to a business: the logs of endpoints and of payments' own addresses, sending again, past events."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import accumulate
from typing import cast

import msgspec

from payagg.application.ports.reports import PAGE_BYTES
from payagg.application.ports.store import Transaction
from payagg.application.schemas.webhooks import DeliveryView, EventBody, EventPage
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.delivery import Delivery
from payagg.domain.errors import ErrorCode, Refusal, invalid, must_exist
from payagg.domain.payment import Payment
from payagg.domain.values import Environment

_Find = Callable[[], Awaitable[Delivery | None]]


class DeliveryLog(UseCase):
    async def of_endpoint(
        self, business_id: str, endpoint_id: str, page: int, per_page: int, after: str | None = None
    ) -> tuple[list[DeliveryView], int]:
        """A page of the log, newest first, and the total; with `after` the page after that delivery. Raises
        NOT_FOUND."""
        async with self.store.begin() as tx:
            must_exist(await tx.endpoints.get(business_id, endpoint_id))
            rows, total = await tx.webhook_events.deliveries(endpoint_id, (page - 1) * per_page, per_page, after)
        return [DeliveryView.of(row) for row in rows], total

    async def of_payment(
        self, business_id: str, reference: str, page: int, per_page: int
    ) -> tuple[list[DeliveryView], int]:
        """A page of the log, newest first, and the total; raises PAYMENT_NOT_FOUND. The address is never shown."""
        async with self.store.begin() as tx:
            await _payment(tx, business_id, reference)
            _, deliveries = await tx.webhook_events.of_payment(reference)
        own = sorted((one for one in deliveries if one.endpoint_id is None), key=lambda one: one.id, reverse=True)
        first = (page - 1) * per_page
        return [DeliveryView.of(one) for one in own[first : first + per_page]], len(own)

    @retry_on_conflict
    async def redeliver(self, business_id: str, endpoint_id: str, delivery_id: str, *, by: Actor) -> DeliveryView:
        """Makes the delivery due at once under the same ids; a running one is not changed. Before its next
        attempt it gets one that takes none from the schedule; past the schedule it gets one, not another 75 hours of
        them. Raises NOT_FOUND, or VALIDATION_ERROR of an endpoint that is not active."""
        async with self.store.begin() as tx:
            endpoint = must_exist(await tx.endpoints.lock(business_id, endpoint_id))
            find = partial(tx.webhook_events.delivery, endpoint_id, delivery_id)
            delivery = must_exist(await find())
            if not endpoint.is_active:
                raise invalid("endpointId", "Activate the endpoint first.")
            return await self._make_due(tx, business_id, delivery, find, by)

    @retry_on_conflict
    async def redeliver_to_payment(
        self, business_id: str, reference: str, delivery_id: str, *, by: Actor
    ) -> DeliveryView:
        """The same of a payment's own `webhookUrl`. Raises PAYMENT_NOT_FOUND, NOT_FOUND, or VALIDATION_ERROR while no
        endpoint's secret can sign it."""
        async with self.store.begin() as tx:
            payment = await _payment(tx, business_id, reference)
            find = partial(tx.webhook_events.own_delivery, reference, delivery_id)
            delivery = must_exist(await find())
            if not await tx.endpoints.subscribers(business_id, payment.environment):
                raise invalid("reference", f"Activate a {payment.environment.value} endpoint first: its secret signs.")
            return await self._make_due(tx, business_id, delivery, find, by)

    async def _make_due(
        self, tx: Transaction, business_id: str, before: Delivery, find: _Find, by: Actor
    ) -> DeliveryView:
        now = self.clock.now()
        await tx.webhook_events.redeliver(before, now)
        after = must_exist(await find())
        changes = changes_of(before, after, "status", "next_attempt_at")
        await self.record(tx, by, Action.DELIVERY_REDELIVER, before.id, changes, business_id=business_id)
        return DeliveryView.of(after)

    async def events(self, business_id: str, environment: Environment, after: str | None, limit: int) -> EventPage:
        """Past events in recorded order, strictly after the cursor. A page ends early with the event that reaches
        PAGE_BYTES."""
        async with self.store.begin() as tx:
            found = await tx.webhook_events.page(business_id, environment, after, limit + 1)
        sizes = accumulate((len(event.body) for event in found), initial=0)
        shown = [event for event, before in zip(found[:limit], sizes, strict=False) if before < PAGE_BYTES]
        return EventPage(
            # The stored bytes, unchanged: a merchant verifies what was sent.
            events=cast(list[EventBody], [msgspec.Raw(event.body) for event in shown]),
            next_cursor=shown[-1].id if shown else after,
            has_more=len(found) > len(shown),
        )


async def _payment(tx: Transaction, business_id: str, reference: str) -> Payment:
    payment = await tx.payments.get(reference)
    if payment is None or payment.business_id != business_id:
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    return payment
