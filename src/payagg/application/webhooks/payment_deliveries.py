"""The log of what goes to a payment's own `webhookUrl`, and sending it again. The address itself is never shown."""

from dataclasses import dataclass

from payagg.application.accounts.audit import record
from payagg.application.ports.outside import Clock, Entropy
from payagg.application.ports.store import Store, Transaction
from payagg.application.retry import retry_on_conflict
from payagg.application.schemas.webhooks import DeliveryView
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.payment import Payment


@dataclass(frozen=True)
class PaymentDeliveries:
    store: Store
    clock: Clock
    entropy: Entropy

    async def list_deliveries(
        self, business_id: str, reference: str, page: int, per_page: int
    ) -> tuple[list[DeliveryView], int]:
        """A page of the log, newest first, and the total; raises PAYMENT_NOT_FOUND."""
        async with self.store.begin() as tx:
            await _find(tx, business_id, reference)
            _, deliveries = await tx.webhook_events.of_payment(reference)
        own = sorted((one for one in deliveries if one.endpoint_id is None), key=lambda one: one.id, reverse=True)
        first = (page - 1) * per_page
        return [DeliveryView.of(one) for one in own[first : first + per_page]], len(own)

    @retry_on_conflict
    async def redeliver(self, business_id: str, reference: str, delivery_id: str, *, by: Actor) -> DeliveryView:
        """Makes the delivery due at once under the same ids; a running one is not changed. Raises PAYMENT_NOT_FOUND,
        NOT_FOUND, or VALIDATION_ERROR while no endpoint's secret can sign it."""
        async with self.store.begin() as tx:
            payment = await _find(tx, business_id, reference)
            delivery = await tx.webhook_events.own_delivery(reference, delivery_id)
            if delivery is None:
                raise Refusal(ErrorCode.NOT_FOUND)
            if not await tx.endpoints.subscribers(business_id, payment.environment):
                raise invalid("reference", f"Activate a {payment.environment.value} endpoint first: its secret signs.")
            now = self.clock.now()
            await tx.webhook_events.redeliver(delivery, now)
            again = await tx.webhook_events.own_delivery(reference, delivery_id) or delivery
            changes = changes_of(delivery, again, "status", "next_attempt_at")
            action = Action.DELIVERY_REDELIVER
            await record(tx, self.entropy, now, by, action, delivery_id, changes, business_id=business_id)
        return DeliveryView.of(again)


async def _find(tx: Transaction, business_id: str, reference: str) -> Payment:
    payment = await tx.payments.get(reference)
    if payment is None or payment.business_id != business_id:
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    return payment
