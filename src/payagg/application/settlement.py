"""The only writer of a payment's status: the change, its event and its deliveries are one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from payagg.application.counters import count
from payagg.application.ports import Clock, Entropy, Store, Transaction
from payagg.application.retry import retried
from payagg.application.schemas.payments import PaymentDetail
from payagg.domain.charge import (
    LATE_FOR,
    TRIGGER_FOR,
    Anomaly,
    AnomalyKind,
    Attempt,
    Outcome,
    ProviderReport,
    payment_reference,
)
from payagg.domain.payment import EXPIRED_REASON, PAYMENT, Payment, Status, Transition, Trigger
from payagg.domain.values import Environment
from payagg.domain.webhook import EVENT_FOR, Delivery, Event


class EventBody(msgspec.Struct, rename="camel", frozen=True):
    """The body merchants receive; stored once as bytes and sent unchanged on every try."""

    id: str
    type: str
    created_at: datetime
    environment: Environment
    sequence: int
    data: PaymentDetail


class ReportEffect(Enum):
    """What a provider's report did."""

    MOVED = "MOVED"
    UNCHANGED = "UNCHANGED"
    ANOMALY = "ANOMALY"
    MISMATCH = "MISMATCH"
    UNKNOWN_PAYMENT = "UNKNOWN_PAYMENT"


# How a final status came to be, to notice a report that repeats it.
_FINAL_OF = {Trigger.SUCCEED: Status.SUCCESS, Trigger.FAIL: Status.FAILED, Trigger.REVERSE: Status.REVERSED}
EXPIRE_BATCH = 200
SIMULATED = "SIMULATED"  # the reason of a transition that a simulate call made


@dataclass(frozen=True)
class Settlement:
    store: Store
    clock: Clock
    entropy: Entropy

    async def write(self, tx: Transaction, payment: Payment, transition: Transition | None) -> Payment:
        """Stores a moved payment with its transition, event and deliveries. The payment must be locked in `tx`."""
        if transition is None:
            return payment
        await tx.payments.save(payment, transition)
        count(
            "payment_transitions", transition.from_status.value, transition.to_status.value, payment.environment.value
        )
        kind = EVENT_FOR[payment.status]
        # Dated when written, not when it happened: an expiry swept late must not slip in before a merchant's cursor.
        now = self.clock.now()
        event = Event(
            id=self.entropy.id("evt", now),
            reference=payment.reference,
            sequence=transition.sequence,
            type=kind.value,
            business_id=payment.business_id,
            environment=payment.environment,
            body=b"",
            created_at=now,
        )
        body = EventBody(
            id=event.id,
            type=event.type,
            created_at=event.created_at,
            environment=event.environment,
            sequence=event.sequence,
            data=PaymentDetail.of(payment),
        )
        event = replace(event, body=msgspec.json.encode(body))
        subscribers = await tx.webhooks.subscribers(payment.business_id, payment.environment)
        deliveries = [
            Delivery.of(event, self.entropy.id("dlv", event.created_at), endpoint.id, None)
            for endpoint in subscribers
            if endpoint.receives(kind, payment.environment)
        ]
        # The payment's own address is signed with the endpoints' secrets; where there is none it cannot be signed.
        if payment.webhook_url is not None and subscribers:
            deliveries.append(Delivery.of(event, self.entropy.id("dlv", event.created_at), None, payment.webhook_url))
        await tx.webhooks.emit(event, deliveries)
        return payment

    async def current(self, tx: Transaction, payment: Payment, now: datetime) -> Payment:
        """The locked payment with an expiry that has come made durable first."""
        if payment.is_expired(now):
            return await self.write(tx, *payment.expire())
        return payment

    async def move(
        self, tx: Transaction, payment: Payment, trigger: Trigger, *, actor: str, reason: str | None = None
    ) -> Payment:
        """Applies `trigger` to a locked payment; raises the machine's refusal when it is final."""
        return await self.write(tx, *payment.move(trigger, self.clock.now(), actor=actor, reason=reason))

    @retried
    async def report(
        self,
        report: ProviderReport,
        gateway: str,
        environment: Environment,
        actor: str,
        *,
        asked: Attempt | None = None,
    ) -> ReportEffect:
        """Applies a provider's report about one of our references; `asked` is the attempt it was asked about.

        Nothing but an exact match of provider, environment, reference, currency and amount moves a payment; every
        other statement about money is kept as an anomaly.
        """
        # An answer about another reference than the one asked for must not move that other payment.
        reference = asked.reference if asked else payment_reference(report.provider_reference)
        async with self.store.begin() as tx:
            stored = await tx.payments.lock(reference)
            if stored is None:
                if report.outcome in TRIGGER_FOR:
                    await self.note(tx, None, AnomalyKind.UNKNOWN_REFERENCE, actor, report)
                return ReportEffect.UNKNOWN_PAYMENT
            now = self.clock.now()
            if asked is not None and report.provider_reference != asked.provider_reference:
                await self.note(tx, stored, AnomalyKind.MISMATCH, actor, report, field="reference")
                return ReportEffect.MISMATCH
            trigger = TRIGGER_FOR.get(report.outcome)
            if trigger is None:
                return ReportEffect.UNCHANGED
            if stored.environment is not environment:
                await self.note(tx, stored, AnomalyKind.WRONG_ENVIRONMENT, actor, report)
                return ReportEffect.ANOMALY
            attempt = _attempt_named(await tx.payments.attempts(reference), report.provider_reference, gateway)
            if attempt is None:
                await self.note(tx, stored, AnomalyKind.WRONG_PROVIDER, actor, report, gateway=gateway)
                return ReportEffect.ANOMALY
            if report.outcome is Outcome.FAILED and not attempt.is_handed_off:
                return ReportEffect.UNCHANGED  # nobody was sent there; the payer may be paying through another attempt
            difference = report.mismatch(stored)
            if difference == "amount" and _is_part(report, stored):
                await self.note(tx, stored, AnomalyKind.PARTIAL_REFUND, actor, report)
                return ReportEffect.ANOMALY
            if difference is not None:
                await self.note(tx, stored, AnomalyKind.MISMATCH, actor, report, field=difference)
                return ReportEffect.MISMATCH
            payment = await self.current(tx, stored, now)
            if payment.is_final:
                if payment.status is _FINAL_OF[trigger] and not await self._is_second_charge(tx, payment, report):
                    return ReportEffect.UNCHANGED
                await self.note(tx, payment, LATE_FOR[trigger], actor, report)
                return ReportEffect.ANOMALY
            # A success names the charge that was paid, so that a second paid one can be told from a repeat.
            reason = report.provider_reference if trigger is Trigger.SUCCEED else report.reason
            await self.move(tx, replace(payment, gateway=gateway), trigger, actor=actor, reason=reason)
            return ReportEffect.MOVED

    async def _is_second_charge(self, tx: Transaction, payment: Payment, report: ProviderReport) -> bool:
        """Whether a success is of another charge than the one that made the payment SUCCESS: paid twice."""
        if payment.status is not Status.SUCCESS:
            return False
        paid = [t.reason for t in await tx.payments.transitions(payment.reference) if t.to_status is Status.SUCCESS]
        return paid not in ([report.provider_reference], [SIMULATED])

    async def close(self, tx: Transaction, payment: Payment, attempt: Attempt, *, unpaid: bool, actor: str) -> Payment:
        """Ends the asking about a locked payment: with the provider's word that nothing was paid it expires, without
        it the payment stays PENDING and is named to operators once."""
        if payment.status is not Status.PENDING:
            return payment
        if unpaid:
            return await self.move(tx, payment, Trigger.EXPIRE, actor=actor, reason=EXPIRED_REASON)
        if not any(a.kind is AnomalyKind.NO_EVIDENCE for a in await tx.payments.anomalies(payment.reference)):
            details = {"providerReference": attempt.provider_reference, "gateway": attempt.gateway}
            await self._keep(tx, payment.reference, AnomalyKind.NO_EVIDENCE, actor, details)
        return payment

    async def note(
        self,
        tx: Transaction,
        payment: Payment | None,
        kind: AnomalyKind,
        source: str,
        report: ProviderReport,
        **more: Any,
    ) -> None:
        """Keeps a fact that must not move the payment; the same fact is kept once."""
        details: Mapping[str, Any] = {
            "providerReference": report.provider_reference,
            "word": report.word,
            "amounts": sorted(report.amounts),
            "currency": report.currency,
            **report.details,
            **more,
        }
        reference = payment.reference if payment else None
        known = await tx.payments.anomalies(reference) if reference else []
        if not any(a.kind is kind and dict(a.details) == details for a in known):
            await self._keep(tx, reference, kind, source, details)

    async def _keep(
        self, tx: Transaction, reference: str | None, kind: AnomalyKind, source: str, details: Mapping[str, Any]
    ) -> None:
        now = self.clock.now()
        await tx.payments.add_anomaly(Anomaly(self.entropy.id("anm", now), reference, kind, source, details, now))
        count("anomalies", kind.value)

    @retried
    async def expire_due(self) -> int:
        """Makes durable what every reader sees already: INITIATED payments past their window. A batch at a time."""
        async with self.store.begin() as tx:
            expired = await tx.payments.expired(self.clock.now(), EXPIRE_BATCH)
            for payment in expired:
                await self.write(tx, *payment.expire())
            return len(expired)


def _is_part(report: ProviderReport, payment: Payment) -> bool:
    """Whether a reversal is of less than the payment: it stays paid, and somebody should know."""
    return report.outcome is Outcome.REVERSED and bool(report.amounts) and max(report.amounts) < payment.amount


def _attempt_named(attempts: list[Attempt], provider_reference: str, gateway: str) -> Attempt | None:
    return next((a for a in attempts if a.provider_reference == provider_reference and a.gateway == gateway), None)


assert set(_FINAL_OF.values()) == PAYMENT.final
