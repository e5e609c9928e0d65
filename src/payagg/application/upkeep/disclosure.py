"""All stored data about one payer, for a data subject's request."""

from datetime import datetime
from typing import Any

import msgspec

from payagg.application.schemas.views import view_of
from payagg.application.upkeep.retention import payments_of_payer
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, Actor
from payagg.domain.payment import Status
from payagg.domain.values import Environment


class Recipient(msgspec.Struct, rename="camel"):
    """Who received the payer's data, and when: a provider of a charge, or an endpoint of the merchant. `at` is None
    where the payment's history is in the archive."""

    name: str
    at: datetime | None


class DisclosedPayment(msgspec.Struct, rename="camel"):
    """One payment with all its payer's data. `amount` is kobo."""

    reference: str
    merchant: str
    environment: Environment
    amount: int
    currency: str
    status: Status
    created_at: datetime
    customer_email: str | None
    customer_name: str | None
    customer_phone: str | None
    metadata: Any
    recipients: list[Recipient]


class Disclosure(msgspec.Struct, rename="camel"):
    """`at`: the instant of the disclosure."""

    email: str
    at: datetime
    payments: list[DisclosedPayment]


class Disclosures(UseCase):
    async def make(self, email: str, *, by: Actor) -> Disclosure:
        """Every payment of the payer, by reference. Each disclosure is an audit entry, which never has the address.
        Raises VALIDATION_ERROR on `email`."""
        references = [reference async for reference in payments_of_payer(self.store, email)]
        found = [await self._disclose(reference, by) for reference in references]
        return Disclosure(email, self.clock.now(), [payment for payment in found if payment is not None])

    @retry_on_conflict
    async def _disclose(self, reference: str, by: Actor) -> DisclosedPayment | None:
        async with self.store.begin() as tx:
            payment = await tx.payments.get(reference)
            if payment is None:
                return None
            names = await tx.businesses.names([payment.business_id])
            attempts = await tx.attempts.of_payment(reference)
            _, deliveries = await tx.webhook_events.of_payment(reference)
            archived = await tx.payments.archived(reference)
            told = [Recipient(gateway, None) for gateway, *_ in (archived[0].attempts if archived is not None else ())]
            told += [Recipient(attempt.gateway, attempt.created_at) for attempt in attempts]
            told += [
                Recipient(one.endpoint_id or "webhookUrl", one.last_attempt_at)
                for one in deliveries
                if one.last_attempt_at
            ]
            business_id = payment.business_id
            await self.record(tx, by, Action.PAYMENT_DISCLOSE, reference, business_id=business_id)
            merchant = names.get(business_id, business_id)
            told.sort(key=lambda one: one.at or payment.created_at)
            return view_of(DisclosedPayment, payment, merchant=merchant, recipients=told)
