"""Checks charges whose result never came: lost events, lost answers, payers who closed the browser."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from payagg.application.gateways.payment_options import ChosenProvider, PaymentOptions
from payagg.application.payments.provider_calls import ProviderCalls, no_crash
from payagg.application.payments.settlement import Settlement
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.attempt import Attempt, after_check, postpone_check
from payagg.domain.payment import Payment
from payagg.domain.rate_limit import EPOCH
from payagg.domain.report import ProviderFault, ProviderReport
from payagg.domain.values import Environment

# Checks a second at one provider in one environment, by one worker; businesses take turns. A worker that was away for
# hours finds thousands due and makes them at this rate.
RATE = 50
AT_ONCE = 10
# How long a claimed check is leased: longer than a whole run of this worker may take.
HOLD = timedelta(minutes=2)


@dataclass(frozen=True)
class Reconciler(UseCase):
    payment_options: PaymentOptions
    provider_calls: ProviderCalls
    settlement: Settlement
    crash_point: Callable[[str], None] = no_crash

    async def run_once(self) -> int:
        """One run at every provider in both environments; the number of checks."""
        return sum(await asyncio.gather(*(self.run_at(slug, environment) for slug, environment in self.shares())))

    def shares(self) -> list[tuple[str, Environment]]:
        """Each has its own rate, so none waits behind another's backlog."""
        return [(slug, environment) for slug in self.payment_options.providers for environment in Environment]

    async def run_at(self, slug: str, environment: Environment, since: datetime = EPOCH) -> int:
        """Makes the checks due there, RATE at most; how many. Safe in any number of workers.

        Also checks attempts in flight at `since`, the start of this worker: the process that waited for them may have
        died.
        """
        due = await in_transaction(
            self.store,
            lambda tx: tx.attempts.due_checks(slug, environment, self.clock.now(), RATE, HOLD, since),
        )
        gate = asyncio.Semaphore(AT_ONCE)

        async def check_bounded(attempt: Attempt) -> None:
            async with gate:
                await self._ask(attempt)

        results = await asyncio.gather(*(check_bounded(attempt) for attempt in due), return_exceptions=True)
        # A failed check (the database went away) leaves its attempt leased and due again; the others continue.
        failures = [result for result in results if isinstance(result, Exception)]
        if failures:
            raise failures[0]
        return len(due)

    async def oldest_unasked(self) -> datetime | None:
        """Since when the oldest overdue check has been due, also of a slug that no provider has any more; None without
        one. For the metric."""
        return await in_transaction(self.store, lambda tx: tx.attempts.oldest_check(self.clock.now()))

    async def _ask(self, attempt: Attempt) -> None:
        opened = await self._open(attempt)
        if opened is None:
            return
        payment, current, choice, began = opened
        report: ProviderReport | None = None
        if choice is not None:
            with suppress(ProviderFault):
                report = await self.provider_calls.fetch(payment, current, choice, "reconciler")
        self.crash_point("J1")
        if report is not None:
            await self.settlement.report(report, current.gateway, payment.environment, "reconciler", asked=current)
        self.crash_point("J2")
        await self._schedule(current, report, began)

    @retry_on_conflict
    async def _open(self, attempt: Attempt) -> tuple[Payment, Attempt, ChosenProvider | None, datetime] | None:
        """What to check and the instant; None when nothing is to be checked now. A missing choice = no credentials."""
        async with self.store.begin() as tx:
            payment = await tx.payments.lock(attempt.reference)
            if payment is None:
                return None
            now = self.clock.now()
            current = (await tx.attempts.of_payment(attempt.reference))[attempt.number - 1]
            postponed = postpone_check(payment, current, now)
            if postponed is not None:
                await tx.attempts.save(postponed, current.token)
                return None
            choice, is_admitted = await self.payment_options.provider_of_attempt(tx, current, payment.environment)
            if choice is not None and not is_admitted:
                return None  # unhealthy: the lease brings it back unchecked
            return payment, current, choice, now

    @retry_on_conflict
    async def _schedule(self, asked: Attempt, report: ProviderReport | None, began: datetime) -> None:
        """Schedules the next check; after the last one, evidence of no payment ends the payment."""
        async with self.store.begin() as tx:
            payment = await tx.payments.lock(asked.reference)
            if payment is None:
                return  # it moved to another cell during the call
            # Read again under the lock: the attempt may have been handed off during the call, and that must stand.
            current = (await tx.attempts.of_payment(asked.reference))[asked.number - 1]
            done = after_check(payment, current, began, self.entropy.chance(), is_answered=report is not None)
            await tx.attempts.save(done, current.token)
            if done.next_ask_at is None:
                await self.settlement.end_asking(tx, payment, current, report, actor="reconciler")
