"""The only writer of a payment's status: the change, its event and its deliveries are one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from payagg.application.ports.elsewhere import NOWHERE, Elsewhere
from payagg.application.ports.providers import ProviderEvent
from payagg.application.ports.store import Transaction
from payagg.application.schemas.payments import PaymentDetail
from payagg.application.schemas.webhooks import EventBody, Notice
from payagg.application.telemetry import count
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.attempt import Attempt, payment_reference
from payagg.domain.checks import with_changes
from payagg.domain.delivery import Delivery, Event
from payagg.domain.payment import Payment, Transition, Trigger
from payagg.domain.report import (
    PAID_LATE,
    Outcome,
    ProviderReport,
    ReportEffect,
    Verdict,
    judge,
    judge_silence,
    was_paid,
)
from payagg.domain.values import Environment, instant_past
from payagg.domain.webhook import EVENT_FOR, EventType, Subscriber, anomaly_event_of, next_sequence


@dataclass(frozen=True)
class Settled:
    """The result of a report; `payment` after it, None when it was not read or does not exist. `is_known`: an equal
    anomaly is stored already. `told_by`: the one that says the same otherwise."""

    effect: ReportEffect
    payment: Payment | None
    is_known: bool = False
    told_by: Anomaly | None = None


@dataclass(frozen=True)
class Settlement(UseCase):
    elsewhere: Elsewhere = NOWHERE

    async def write(
        self,
        tx: Transaction,
        payment: Payment,
        transition: Transition | None,
        subscribers: Sequence[Subscriber] | None = None,
        known: Sequence[Anomaly] | None = None,
    ) -> Payment:
        """Stores a moved payment with its transition, event and deliveries. The payment must be locked in `tx`.

        `subscribers`: the active endpoints of its business and environment, `known`: its anomalies, where they were
        read before.
        """
        if transition is None:
            return payment
        await tx.payments.save(payment, transition)
        count(
            "payment_transitions", transition.from_status.value, transition.to_status.value, payment.environment.value
        )
        await self._emit(tx, payment, EVENT_FOR[payment.status], transition.sequence, subscribers, known)
        return payment

    async def _emit(
        self,
        tx: Transaction,
        payment: Payment,
        kind: EventType,
        sequence: int,
        subscribers: Sequence[Subscriber] | None = None,
        known: Sequence[Anomaly] | None = None,
        notice: Notice | msgspec.UnsetType = UNSET,
    ) -> None:
        """Stores an event with its deliveries."""
        if known is None:
            known = await tx.anomalies.of_payment(payment.reference) if payment.has_adjustments else ()
        # Dated when written, not when it happened: a late expiry must not appear before a merchant's cursor.
        now = self.clock.now()
        last = await tx.webhook_events.last_id(payment.business_id, payment.environment)
        body = EventBody(
            id=self.entropy.id("evt", instant_past(last, now)),
            type=kind.value,
            created_at=now,
            environment=payment.environment,
            sequence=sequence,
            data=PaymentDetail.of(payment, known),
            notice=notice,
        )
        event = Event.of(payment, body.id, body.type, sequence, msgspec.json.encode(body), now)
        if subscribers is None:
            subscribers = await tx.endpoints.subscribers(payment.business_id, payment.environment)
        deliveries = [
            Delivery.of(event, self.entropy.id("dlv", now), endpoint.id, None)
            for endpoint in subscribers
            if endpoint.receives(kind, payment.environment)
        ]
        # The payment's own address is signed with the endpoints' secrets; where there is none it cannot be signed.
        if payment.webhook_url is not None and subscribers:
            deliveries.append(Delivery.of(event, self.entropy.id("dlv", now), None, payment.webhook_url))
        await tx.webhook_events.emit(event, deliveries)

    async def move(
        self,
        tx: Transaction,
        payment: Payment,
        trigger: Trigger,
        *,
        actor: str,
        reason: str | None = None,
        subscribers: Sequence[Subscriber] | None = None,
        known: Sequence[Anomaly] = (),
    ) -> Payment:
        """Applies `trigger` to a locked payment; raises the machine's refusal when it is final. `known` are its
        anomalies, some of which are sent once it is paid."""
        moved, transition = payment.move(trigger, self.clock.now(), actor=actor, reason=reason)
        moved = await self.write(tx, moved, transition, subscribers, known or None)
        return await self._tell_earlier(tx, moved, known, subscribers) if was_paid(moved, known) else moved

    @retry_on_conflict
    async def report(
        self,
        report: ProviderReport,
        gateway: str,
        environment: Environment,
        actor: str,
        *,
        asked: Attempt | None = None,
        event: ProviderEvent | None = None,
        as_of: datetime | None = None,
        told_by: Callable[[Sequence[Anomaly]], Anomaly | None] | None = None,
    ) -> Settled:
        """Applies a provider's report about one of our references; `asked` is the attempt that was checked,
        `event` the stored event that reported, which is handled in the same transaction. It is judged as of now, or as
        of an instant known to lie before the money moved. `told_by` finds the anomaly that tells of it already. Raises
        MISDIRECTED_REQUEST or Unavailable for a payment that moved to another cell or is on its way."""
        if asked is not None and report.changes_nothing(asked):
            return Settled(ReportEffect.UNCHANGED, None)
        reference = asked.reference if asked else payment_reference(report.provider_reference)
        async with self.store.begin() as tx:
            found = await tx.payments.lock_for_status(reference)
            if found is None and asked is not None:
                # It moved to another cell during the call, and is checked there.
                return Settled(ReportEffect.UNCHANGED, None)
            if found is None:
                await self.elsewhere.ensure_payment_here(reference, tx)
            payment = found.payment if found is not None else None
            attempts, paid = found.attempts if found is not None else [], await self._paid_transactions(tx, payment)
            known = found.anomalies if found is not None else []
            if told_by is not None and (fact := told_by(known)) is not None:
                return Settled(ReportEffect.UNCHANGED, payment, told_by=fact)
            if payment is not None and payment.is_final and not attempts:
                archived = await tx.payments.archived(reference)
                if archived is not None:
                    attempts, paid = archived[0].charges(known), [archived[0].paid] if archived[0].paid else []
            verdict = judge(
                report,
                payment,
                attempts,
                gateway=gateway,
                environment=environment,
                asked=asked,
                paid=paid,
                actor=actor,
                now=as_of or self.clock.now(),
                known=known,
            )
            if attempts and not (found is not None and found.attempts):
                verdict = with_changes(verdict, attempt=None)  # it is in the archive, which is read-only
            subscribers = found.subscribers if found is not None else None
            settled = await self._apply(tx, verdict, payment, known, actor, subscribers)
            done = Settled(verdict.effect, settled, is_known=_is_known(verdict, known))
            # It was paid, and is back: two facts, of which the second is judged by the first.
            is_half = verdict.anomaly in PAID_LATE and report.outcome is Outcome.REVERSED and not done.is_known
            if event is not None and not is_half:
                await tx.inbox.save(event.handled(verdict.effect.value, self.clock.now()))
        if is_half:
            return await self.report(report, gateway, environment, actor, asked=asked, event=event, as_of=as_of)
        return done

    async def end_asking(
        self, tx: Transaction, payment: Payment, attempt: Attempt, report: ProviderReport | None, *, actor: str
    ) -> None:
        """Records the last check of a locked payment's attempt; `report` is its result."""
        verdict = judge_silence(report, payment, attempt, actor=actor, now=self.clock.now())
        if verdict.effect is not ReportEffect.UNCHANGED:
            await self._apply(tx, verdict, payment, await tx.anomalies.of_payment(payment.reference), actor)

    async def _paid_transactions(self, tx: Transaction, payment: Payment | None) -> list[str | None]:
        if payment is None or not payment.is_final:
            return []
        transitions = await tx.payments.transitions(payment.reference)
        return [one.reason for one in transitions if one.trigger in (Trigger.SUCCEED, Trigger.REVERSE)]

    async def _apply(
        self,
        tx: Transaction,
        verdict: Verdict,
        payment: Payment | None,
        known: Sequence[Anomaly],
        source: str,
        subscribers: Sequence[Subscriber] | None = None,
    ) -> Payment | None:
        """The payment after the verdict. `known` are its anomalies."""
        paid_before = payment is not None and was_paid(payment, known)
        for moved, transition in verdict.changes:
            payment = await self.write(tx, moved, transition, subscribers, known)
        if verdict.attempt is not None:
            await tx.attempts.save(verdict.attempt, verdict.attempt.token)
        if payment is not None and verdict.facts is not None:
            payment = await self._note(tx, payment, payment.with_fee(verdict.facts.fee, verdict.facts.received))
        if verdict.anomaly is not None and not _is_known(verdict, known):
            kept = await self._anomaly(tx, payment, verdict.anomaly, source, verdict.details)
            if payment is not None:
                payment, kept = await self._tell(tx, payment, kept, [kept, *known], subscribers)
            await tx.anomalies.add(kept)
            count("anomalies", kept.kind.value)
            known = [kept, *known]
        if payment is not None and not paid_before and was_paid(payment, known):
            payment = await self._tell_earlier(tx, payment, known, subscribers)
        return payment

    async def _anomaly(
        self, tx: Transaction, payment: Payment | None, kind: AnomalyKind, source: str, details: Mapping[str, Any]
    ) -> Anomaly:
        now = self.clock.now()
        anomaly_id = self.entropy.id("anm", instant_past(await tx.anomalies.last_id(), now))
        anomaly = Anomaly(anomaly_id, None, kind, source, details, now)
        if payment is None:
            return anomaly
        own = {"business_id": payment.business_id, "environment": payment.environment}
        return with_changes(anomaly, reference=payment.reference, **own)

    async def _tell(
        self,
        tx: Transaction,
        payment: Payment,
        fact: Anomaly,
        known: Sequence[Anomaly],
        subscribers: Sequence[Subscriber] | None,
    ) -> tuple[Payment, Anomaly]:
        """Emits the event of a fact that the merchant was not sent yet, and marks the payment. Both as stored."""
        event_type = anomaly_event_of(fact, was_paid=was_paid(payment, known))
        if event_type is None:
            return payment, fact
        sequence = next_sequence(payment, known)
        # On an open payment the next transition continues from this sequence; a final one has none.
        marked = with_changes(
            payment, has_adjustments=True, sequence=payment.sequence if payment.is_final else sequence
        )
        payment = await self._note(tx, payment, marked)
        told = with_changes(fact, event_sequence=sequence)
        facts = [told if one.id == fact.id else one for one in known]
        await self._emit(tx, payment, event_type, sequence, subscribers, facts, Notice.of(fact, payment))
        return payment, told

    async def _tell_earlier(
        self,
        tx: Transaction,
        payment: Payment,
        known: Sequence[Anomaly],
        subscribers: Sequence[Subscriber] | None,
    ) -> Payment:
        """Emits the facts that were stored before the payment was paid, oldest first."""
        facts = sorted(known, key=lambda fact: fact.id)
        for position, fact in enumerate(facts):
            if fact.event_sequence is None:
                payment, told = await self._tell(tx, payment, fact, facts, subscribers)
                if told.event_sequence is not None:
                    facts[position] = told
                    await tx.anomalies.notify(told.id, told.event_sequence)
        return payment

    async def _note(self, tx: Transaction, before: Payment, after: Payment) -> Payment:
        if after != before:
            await tx.payments.note(after)
        return after


def _is_known(verdict: Verdict, known: Sequence[Anomaly]) -> bool:
    return any(fact.is_same_fact(verdict.anomaly, verdict.details) for fact in known if verdict.anomaly)
