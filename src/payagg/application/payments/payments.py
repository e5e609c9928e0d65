"""Payments for a merchant's server and dashboard: initiate, read, simulate."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import msgspec

from payagg.application.gateways.payment_options import PaymentOptions
from payagg.application.payments.expiry import store_expiry
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import Conflict, ReferenceTaken, Unavailable
from payagg.application.ports.store import Transaction
from payagg.application.schemas.payments import InitiatedPayment, InitiatePayment, PaymentDetail, TestPayment
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.anomaly import Anomaly
from payagg.domain.audit import Action, Actor, ActorRealm, changes_of
from payagg.domain.business import Business
from payagg.domain.errors import ErrorCode, Refusal, invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import OUTCOMES, SIMULATED, Payment
from payagg.domain.values import Environment

REFERENCE_DRAWS = 8


@dataclass(frozen=True)
class Initiation:
    """`created` False = a replay of an open payment; `mismatch` = the key came with another body; `unsigned` = nothing
    can be sent to the webhookUrl now, as no active endpoint has a signing secret."""

    payment: InitiatedPayment
    created: bool
    mismatch: bool
    unsigned: bool


@dataclass(frozen=True)
class Payments(UseCase):
    settlement: Settlement
    payment_options: PaymentOptions
    base_url: str
    checkout_ttl: timedelta

    async def initiate(
        self,
        command: InitiatePayment,
        business: Business,
        environment: Environment,
        cached: KeyHolder | None = None,
    ) -> Initiation:
        """Creates an INITIATED payment, or replays the open one that holds the idempotency key.

        Raises VALIDATION_ERROR, DUPLICATE_PAYMENT, GATEWAY_NOT_FOUND, GATEWAY_DISABLED, NO_GATEWAY_AVAILABLE, and
        KeyStateChanged when the key's state differs from `cached`.
        """

        add = partial(self.store.add_payment, cached=cached)
        return await self._initiate(command, business, environment, cached, add)

    async def _initiate(
        self,
        command: InitiatePayment,
        business: Business,
        environment: Environment,
        cached: KeyHolder | None,
        add: Callable[[Payment], Awaitable[tuple[Payment, bool]]],
        *,
        is_test: bool = False,
    ) -> Initiation:
        """`add` stores a payment, as the store's `add_payment` does."""
        if command.currency is not None:  # the one that it is by default
            command = msgspec.structs.replace(command, currency=None)
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
            api_key_id=cached.key.id if cached is not None else None,
        )
        unsigned = command.webhook_url is not None and not await self._has_endpoint(business.id, environment)
        if command.gateway is not None or environment is Environment.LIVE:
            if command.idempotency_key is not None:
                # A replay answers the same while gateways change, so the key is looked up before they are.
                original = await self.store.find_original(business.id, environment, command.idempotency_key, cached)
                if original is not None:
                    original = await store_expiry(self.settlement, original)
                    return self._initiation(original.replay(now), False, fingerprint, unsigned)
            await self.payment_options.ensure_can_initiate(business.id, environment, command.gateway)
        for _ in range(REFERENCE_DRAWS):
            try:
                stored, created = await add(payment)
            except ReferenceTaken:
                payment = replace(payment, reference=self.entropy.reference(now))
                continue
            seen = stored if created else (await store_expiry(self.settlement, stored)).replay(self.clock.now())
            return self._initiation(seen, created, fingerprint, unsigned)
        raise Unavailable("no free reference was drawn")

    async def initiate_test(self, command: TestPayment, business: Business, *, by: Actor) -> Initiation:
        """A SANDBOX payment served by the simulator; raises NO_SANDBOX_KEY without an active SANDBOX key."""
        async with self.store.begin() as tx:
            await _ensure_sandbox_key(tx, business.id)
        fields = {name: getattr(command, name) for name in command.__struct_fields__}
        paid_by_simulator = InitiatePayment(**fields, gateway=SANDBOX_SLUG)
        add = partial(self._add_recorded, by=by)
        return await self._initiate(paid_by_simulator, business, Environment.SANDBOX, None, add, is_test=True)

    @retry_on_conflict
    async def _add_recorded(self, payment: Payment, by: Actor) -> tuple[Payment, bool]:
        """As the store's `add_payment`, with an audit entry, as a person made this payment."""
        async with self.store.begin() as tx:
            # A move to another cell takes the keys first, under the same lock.
            await tx.businesses.lock(payment.business_id)
            await _ensure_sandbox_key(tx, payment.business_id)
            # Lists wait for a transaction from its lock on: one dated before it could come behind what they have shown.
            payment = payment.dated(self.clock.now())
            if await tx.payments.add(payment):
                changes = changes_of(None, payment, "amount", "status")
                owner = payment.business_id
                await self.record(tx, by, Action.PAYMENT_CREATE, payment.reference, changes, business_id=owner)
                return payment, True
        original = await self.store.find_original(
            payment.business_id, payment.environment, payment.idempotency_key or ""
        )
        if original is None:
            raise Conflict("the payment that held the idempotency key is gone")
        return original, False

    async def read(
        self, reference: str, business_id: str, environment: Environment, cached: KeyHolder | None = None
    ) -> PaymentDetail:
        """Raises PAYMENT_NOT_FOUND alike for an unknown reference, another business's and another environment's, and
        with `cached` what the store says of it."""
        found = _ensure_owner(await self.store.find_payment(reference, cached), business_id, environment)
        payment = await store_expiry(self.settlement, found)
        facts: list[Anomaly] = []
        # Few payments have any, so only those cost another statement.
        if payment.has_adjustments:
            async with self.store.begin() as tx:
                facts = await tx.anomalies.of_payment(reference)
        return PaymentDetail.of(payment, facts)

    @retry_on_conflict
    async def simulate(self, reference: str, outcome: str, business_id: str, *, by: Actor) -> PaymentDetail:
        """Moves an open SANDBOX payment to the final state `outcome` names; raises PAYMENT_ALREADY_FINAL."""
        trigger = OUTCOMES.get(outcome.upper())
        if trigger is None:
            raise invalid("outcome", "Must be SUCCESS, FAILED or REVERSED.")
        async with self.store.begin() as tx:
            found = await tx.payments.lock_for_status(reference)
            payment = _ensure_owner(found.payment if found else None, business_id, Environment.SANDBOX)
            now = self.clock.now()
            payment.as_of(now).ensure_open()
            subscribers, known = (found.subscribers, found.anomalies) if found else (None, ())
            moved = await self.settlement.move(
                tx, payment, trigger, actor=by.name, reason=SIMULATED, subscribers=subscribers, known=known
            )
            # What a key does is in the payment's own history, and there is much of it.
            if by.realm is not ActorRealm.KEY:
                changes = changes_of(payment, moved, "status")
                await self.record(tx, by, Action.PAYMENT_SIMULATE, reference, changes, business_id=business_id)
            return PaymentDetail.of(moved, await tx.anomalies.of_payment(reference) if moved.has_adjustments else ())

    async def _has_endpoint(self, business_id: str, environment: Environment) -> bool:
        async with self.store.begin() as tx:
            return bool(await tx.endpoints.subscribers(business_id, environment))

    def _initiation(self, payment: Payment, created: bool, fingerprint: bytes, unsigned: bool) -> Initiation:
        view = InitiatedPayment(
            reference=payment.reference,
            checkout_url=f"{self.base_url}/checkout/{payment.reference}",
            amount=payment.amount,
            currency=payment.currency,
            environment=payment.environment,
            status=payment.status,
            expires_at=payment.expires_at,
        )
        mismatch = not created and payment.fingerprint not in (None, fingerprint)
        return Initiation(view, created, mismatch, unsigned)


async def _ensure_sandbox_key(tx: Transaction, business_id: str) -> None:
    if not await tx.api_keys.count_active(business_id, Environment.SANDBOX):
        raise Refusal(ErrorCode.NO_SANDBOX_KEY)


def _ensure_owner(payment: Payment | None, business_id: str, environment: Environment) -> Payment:
    if payment is None or payment.business_id != business_id or payment.environment is not environment:
        raise Refusal(ErrorCode.PAYMENT_NOT_FOUND)
    return payment
