"""After a restore into the past: asking providers about all that happened since, of which the database knows nothing.

Three things may be missing. What became of charges that are known: they are asked about at once. Charges of payments
that were open then: their references can be told beforehand, so each provider is asked about the next ones of each
payment. Payments begun since then: events about them are kept as anomalies, and people compare the rest.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from payagg.application.audit import record
from payagg.application.payment_options import ChosenProvider, PaymentOptions
from payagg.application.ports import Clock, Entropy
from payagg.application.provider_calls import ProviderCalls
from payagg.application.retry import retried
from payagg.application.settlement import Settlement
from payagg.application.store import Store
from payagg.domain.attempt import Attempt, provider_reference
from payagg.domain.audit import Action, Actor
from payagg.domain.checks import revised
from payagg.domain.errors import invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import Payment, Status
from payagg.domain.report import ProviderFault, ProviderReport
from payagg.domain.values import Environment

# A reference whose charge was never made (the provider turned it down) leaves a gap: so many are asked about in a row.
LOOK_AHEAD = 3
BATCH = 500
AT_ONCE = 10
SOURCE = "catch-up"


@dataclass(frozen=True)
class CaughtUp:
    """`hastened`: known charges that the worker asks about at once. `looked_at`: payments that were open. `found`: the
    references of theirs whose charges were unknown here. `unanswered`: of those whose provider said nothing."""

    hastened: int
    looked_at: int
    found: tuple[str, ...]
    unanswered: tuple[str, ...]


@dataclass(frozen=True)
class CatchUp:
    store: Store
    clock: Clock
    entropy: Entropy
    payment_options: PaymentOptions
    provider_calls: ProviderCalls
    settlement: Settlement

    async def run(self, since: datetime, *, by: Actor) -> CaughtUp:
        """Asks about everything since that instant, to which the database was restored. Before servers and workers
        start: an expiry would come first. Safe to repeat. Raises VALIDATION_ERROR for an instant still ahead."""
        if since > self.clock.now():
            raise invalid("since", "Must not lie ahead.")
        shares = [(slug, environment) for slug in self._slugs for environment in Environment]
        hastened = sum([await self._hasten(*share) for share in shares])
        found: list[str] = []
        unanswered: list[str] = []
        looked_at = 0
        async for payments in self._open_then(since):
            looked_at += len(payments)
            gate = asyncio.Semaphore(AT_ONCE)
            for payment, seen in zip(
                payments, await asyncio.gather(*(self._look(one, since, gate) for one in payments)), strict=True
            ):
                found += seen.found
                unanswered += [payment.reference] if seen.is_unanswered else []
        done = CaughtUp(hastened, looked_at, tuple(found), tuple(unanswered))
        await self._record(since, done, by)
        return done

    @property
    def _slugs(self) -> list[str]:
        return [slug for slug in self.payment_options.providers if slug != SANDBOX_SLUG]

    async def _hasten(self, slug: str, environment: Environment) -> int:
        hastened = 0
        while done := await self._hasten_batch(slug, environment):
            hastened += done
        return hastened

    @retried
    async def _hasten_batch(self, slug: str, environment: Environment) -> int:
        async with self.store.begin() as tx:
            return await tx.payments.hasten_asks(slug, environment, self.clock.now())

    async def _open_then(self, since: datetime) -> AsyncIterator[list[Payment]]:
        until, reference = since, ""
        while payments := await self._page(until, reference):
            yield payments
            until, reference = payments[-1].expires_at, payments[-1].reference

    @retried
    async def _page(self, until: datetime, reference: str) -> list[Payment]:
        async with self.store.begin() as tx:
            return await tx.payments.initiated(until, reference, BATCH)

    async def _look(self, payment: Payment, since: datetime, gate: asyncio.Semaphore) -> "_Seen":
        """Asks about the payment's next references until none of LOOK_AHEAD in a row is known anywhere."""
        seen, missed = _Seen([]), 0
        choices, number = await self._choices(payment)
        async with gate:
            while choices and missed < LOOK_AHEAD:
                is_known = False
                for choice, slug in choices:
                    attempt = self._supposed(payment, number, choice, slug)
                    try:
                        report = await self.provider_calls.fetch(payment, attempt, choice, SOURCE)
                    except ProviderFault:
                        seen.is_unanswered = True
                        continue
                    if report.is_of_a_charge:
                        is_known = True
                        seen.found.append(attempt.provider_reference)
                        await self._take_up(payment, attempt, report, since)
                        break
                missed = 0 if is_known else missed + 1
                number += 1
        return seen

    @retried
    async def _choices(self, payment: Payment) -> tuple[list[tuple[ChosenProvider, str]], int]:
        """The providers that may have been called for the payment, and the number that its next attempt had."""
        if payment.is_test:
            return [], 0
        async with self.store.begin() as tx:
            known = await tx.payments.attempts(payment.reference)
            found = [(await self.payment_options.of_slug(tx, slug, payment.environment), slug) for slug in self._slugs]
        return [(choice, slug) for choice, slug in found if choice is not None], len(known) + 1

    def _supposed(self, payment: Payment, number: int, choice: ChosenProvider, slug: str) -> Attempt:
        now = self.clock.now()
        claim = Attempt.claim(
            payment,
            number,
            gateway=slug,
            gateway_id=choice.gateway_id,
            scenario=None,
            token=self.entropy.hex(16),
            now=now,
        )
        return claim.leave_unknown(now, self.entropy.chance())

    async def _take_up(self, payment: Payment, attempt: Attempt, report: ProviderReport, since: datetime) -> None:
        """The payer was sent there while the window was open, so the report is judged as of the restored instant."""
        if await self._add(payment, attempt):
            await self.settlement.report(
                report,
                attempt.gateway,
                payment.environment,
                SOURCE,
                asked=attempt,
                as_of=max(since, payment.created_at),
            )

    @retried
    async def _add(self, payment: Payment, attempt: Attempt) -> bool:
        """False where somebody else went on with the payment meanwhile."""
        async with self.store.begin() as tx:
            locked = await tx.payments.lock(payment.reference)
            known = len(await tx.payments.attempts(payment.reference))
            if locked is None or locked.status is not Status.INITIATED or attempt.number <= known:
                return False
            for number in range(known + 1, attempt.number):
                missed = revised(
                    attempt, number=number, provider_reference=provider_reference(payment.reference, number)
                )
                await tx.payments.add_attempt(missed.refuse())
            await tx.payments.add_attempt(attempt)
            return True

    @retried
    async def _record(self, since: datetime, done: CaughtUp, by: Actor) -> None:
        async with self.store.begin() as tx:
            changes = {
                "hastened": {"before": None, "after": done.hastened},
                "found": {"before": None, "after": len(done.found)},
                "unanswered": {"before": None, "after": len(done.unanswered)},
            }
            at = since.isoformat(timespec="seconds")
            await record(tx, self.entropy, self.clock.now(), by, Action.RESTORE_CATCH_UP, at, changes)


@dataclass
class _Seen:
    found: list[str]
    is_unanswered: bool = False
