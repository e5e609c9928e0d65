"""Ends by hand a payment that no provider will end: one administrator requests, another confirms."""

from dataclasses import dataclass

from payagg.application.payments.settlement import Settlement
from payagg.application.ports.payments import LockedPayment
from payagg.application.ports.store import Transaction
from payagg.application.schemas.operations import ResolvePayment
from payagg.application.use_case import UseCase, retry_on_conflict
from payagg.domain.audit import Action, Actor, changes_of
from payagg.domain.errors import ErrorCode, must_exist
from payagg.domain.payment import Trigger
from payagg.domain.resolution import RESOLVED, Resolution, ask, check_outcome, confirm


@dataclass(frozen=True)
class Resolutions(UseCase):
    settlement: Settlement

    @retry_on_conflict
    async def ask(self, reference: str, command: ResolvePayment, *, by: Actor) -> Resolution:
        """Raises VALIDATION_ERROR, PAYMENT_NOT_FOUND and what the domain's `ask` does."""
        check_outcome(command.outcome)
        async with self.store.begin() as tx:
            found, now = await self._lock(tx, reference), self.clock.now()
            asked = ask(
                found.payment,
                found.anomalies,
                await tx.resolutions.latest(reference),
                id=self.entropy.id("res", now),
                reason=command.reason,
                evidence=command.evidence,
                by=by.name,
                now=now,
            )
            await tx.resolutions.add(asked)
            changes = changes_of(None, asked, "reason", "evidence")
            await self.record(tx, by, Action.PAYMENT_ASK_RESOLUTION, reference, changes)
            return asked

    @retry_on_conflict
    async def confirm(self, reference: str, *, by: Actor) -> Resolution:
        """Ends the payment. Raises PAYMENT_NOT_FOUND and what the domain's `confirm` does."""
        async with self.store.begin() as tx:
            found, now = await self._lock(tx, reference), self.clock.now()
            payment, latest = found.payment, await tx.resolutions.latest(reference)
            confirmed = confirm(payment, found.anomalies, latest, by=by.name, now=now)
            ended = await self.settlement.move(
                tx,
                payment,
                Trigger.FAIL,
                actor=confirmed.actor,
                reason=RESOLVED,
                subscribers=found.subscribers,
            )
            await tx.resolutions.confirm(confirmed)
            changes = changes_of(payment, ended, "status", "failure_reason")
            owner = payment.business_id
            await self.record(tx, by, Action.PAYMENT_RESOLVE, reference, changes, business_id=owner)
            return confirmed

    async def _lock(self, tx: Transaction, reference: str) -> LockedPayment:
        return must_exist(await tx.payments.lock_for_status(reference), code=ErrorCode.PAYMENT_NOT_FOUND)
