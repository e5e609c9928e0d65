"""Payments for a merchant's server and dashboard: initiate, read, simulate."""

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec

from payagg.application.payment_options import PaymentOptions
from payagg.application.ports import Clock, Entropy, KeyHolder, ReferenceTaken, Store, Unavailable
from payagg.application.retry import retried
from payagg.application.schemas.payments import InitiatedPayment, InitiatePayment, PaymentDetail, TestPayment
from payagg.application.settlement import Settlement
from payagg.domain.business import Business
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import OUTCOMES, SIMULATED, Payment
from payagg.domain.values import Environment

REFERENCE_DRAWS = 8


@dataclass(frozen=True)
class Initiation:
    """`created` False = a replay of an open payment; `mismatch` = the key came with another body this time."""

    payment: InitiatedPayment
    created: bool
    mismatch: bool


@dataclass(frozen=True)
class Payments:
    store: Store
    clock: Clock
    entropy: Entropy
    settlement: Settlement
    payment_options: PaymentOptions
    base_url: str
    checkout_ttl: timedelta

    async def initiate(
        self,
        command: InitiatePayment,
        business: Business,
        environment: Environment,
        remembered: KeyHolder | None = None,
        *,
        is_test: bool = False,
    ) -> Initiation:
        """Creates an INITIATED payment, or replays the open one that holds the idempotency key.

        Raises VALIDATION_ERROR, DUPLICATE_PAYMENT, GATEWAY_NOT_FOUND, GATEWAY_DISABLED, NO_GATEWAY_AVAILABLE, and
        StaleKey when the key no longer stands as `remembered`.
        """
        fingerprint = hashlib.sha256(msgspec.json.encode(command, order="sorted")).digest()
        now = self.clock.now()
        payment = Payment.initiate(
            reference=self.entropy.reference(now),
            business_id=business.id,
            environment=environment,
            amount=command.amount,
            now=now,
            ttl=self.checkout_ttl,
            gateway=command.gateway,
            customer_email=command.customer_email,
            customer_name=command.customer_name,
            customer_phone=command.customer_phone,
            callback_url=command.callback_url,
            webhook_url=command.webhook_url,
            metadata=command.metadata,
            idempotency_key=command.idempotency_key,
            fingerprint=fingerprint,
            is_test=is_test,
        )
        if command.gateway is not None or environment is Environment.LIVE:
            if command.idempotency_key is not None:
                # A replay answers the same while gateways change, so the key is looked up before they are.
                original = await self.store.find_original(business.id, environment, command.idempotency_key, remembered)
                if original is not None:
                    return self._initiation(original.replay(now), False, fingerprint)
            await self.payment_options.ensure_can_initiate(business.id, environment, command.gateway)
        for _ in range(REFERENCE_DRAWS):
            try:
                stored, created = await self.store.add_payment(payment, remembered)
            except ReferenceTaken:
                payment = replace(payment, reference=self.entropy.reference(now))
                continue
            return self._initiation(stored if created else stored.replay(self.clock.now()), created, fingerprint)
        raise Unavailable("no free reference was drawn")

    async def initiate_test(self, command: TestPayment, business: Business) -> Initiation:
        """A SANDBOX payment served by the simulator; raises NO_SANDBOX_KEY where no key could have asked for it."""
        async with self.store.begin() as tx:
            if not await tx.api_keys.count_active(business.id, Environment.SANDBOX):
                raise Refusal(ErrorCode.NO_SANDBOX_KEY)
        fields = {name: getattr(command, name) for name in command.__struct_fields__}
        asked = InitiatePayment(**fields, gateway=SANDBOX_SLUG)
        return await self.initiate(asked, business, Environment.SANDBOX, is_test=True)

    async def read(
        self, reference: str, business_id: str, environment: Environment, remembered: KeyHolder | None = None
    ) -> PaymentDetail:
        """Raises PAYMENT_NOT_FOUND alike for an unknown reference, another business's and another environment's, and
        with `remembered` what the store says of it."""
        payment = _owned(await self.store.find_payment(reference, remembered), business_id, environment)
        return PaymentDetail.of(payment.as_of(self.clock.now()))

    @retried
    async def simulate(self, reference: str, outcome: str, business_id: str, actor: str) -> PaymentDetail:
        """Moves an open SANDBOX payment to the final state `outcome` names; raises PAYMENT_ALREADY_FINAL."""
        trigger = OUTCOMES.get(outcome.upper())
        if trigger is None:
            raise invalid("outcome", "Must be SUCCESS, FAILED or REVERSED.")
        async with self.store.begin() as tx:
            payment = _owned(await tx.payments.lock(reference), business_id, Environment.SANDBOX)
            payment.as_of(self.clock.now()).ensure_open()
            return PaymentDetail.of(await self.settlement.move(tx, payment, trigger, actor=actor, reason=SIMULATED))

    def _initiation(self, payment: Payment, created: bool, fingerprint: bytes) -> Initiation:
        view = InitiatedPayment(
            reference=payment.reference,
            checkout_url=f"{self.base_url}/checkout/{payment.reference}",
            amount=payment.amount,
            currency=payment.currency,
            environment=payment.environment,
            status=payment.status,
            expires_at=payment.expires_at,
        )
        return Initiation(view, created, not created and payment.fingerprint != fingerprint)


def _owned(payment: Payment | None, business_id: str, environment: Environment) -> Payment:
    if payment is None or payment.business_id != business_id or payment.environment is not environment:
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    return payment
