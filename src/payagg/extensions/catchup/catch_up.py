"""After a restore to an earlier instant: asks providers about everything since, which the database lacks.

Three things may be missing. Results of known charges: these are checked at once. Charges of payments that were open
then: their references are predictable, so each provider is asked about the next ones of each payment. Payments
initiated since: events about them are stored as anomalies, and a reconciliation finds the rest.

Reconciliation cannot replace this: it reads the charges of past days, and only from providers with a list, while expiry
waits here for the status of open charges, at every provider, now.

A charge's hand-off may be missing too, so a payer may be at its provider. So every attempt whose end the restored
database lacks is left in doubt (`Attempt.leave_in_doubt`), and so is each one found: `process` passes it only after its
provider has answered that nobody is paying there. Elsewhere an attempt without a hand-off never had a payer.
"""

import argparse
import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from payagg.adapters.providers.listing import Pace
from payagg.application.gateways.payment_options import ChosenProvider, PaymentOptions
from payagg.application.payments.provider_calls import ProviderCalls
from payagg.application.payments.settlement import Settlement
from payagg.application.payments.status_checks import RATE
from payagg.application.ports.store import Transaction
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.attempt import ATTEMPTS_MAX, Attempt, AttemptState, provider_reference
from payagg.domain.audit import Action, Actor, Changes
from payagg.domain.checks import with_changes
from payagg.domain.errors import invalid
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import Payment, Status
from payagg.domain.report import ProviderFault, ProviderReport
from payagg.domain.values import Environment, parse_instant
from payagg.entrypoints.bootstrap import Services, running
from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say
from payagg.entrypoints.settings import Settings

BATCH = 500
AT_ONCE = 30  # concurrent calls, enough for RATE at two providers that take half a second
SOURCE = "catch-up"
_Paces = defaultdict[str, Pace]  # by slug


@dataclass(frozen=True)
class CaughtUp:
    """`hastened`: known charges that the worker checks at once. `looked_at`: payments that were open. `found`: their
    references whose charges were unknown here. `unanswered`: the references whose provider did not answer, or could not
    be asked as its credentials do not open here."""

    hastened: int
    looked_at: int
    found: tuple[str, ...]
    unanswered: tuple[str, ...]


@dataclass(frozen=True)
class CatchUp(UseCase):
    payment_options: PaymentOptions
    provider_calls: ProviderCalls
    settlement: Settlement

    async def run(self, since: datetime, *, by: Actor, begun: Callable[[int], None] = lambda _: None) -> CaughtUp:
        """Checks everything since that instant, to which the database was restored. Run it before servers and workers
        start, or an expiry would come first. `begun` is called with `hastened` before providers are asked, which may
        take an hour. Safe to repeat. Raises VALIDATION_ERROR for a future instant."""
        if since > self.clock.now():
            raise invalid("since", "Must not lie ahead.")
        await self._record(Action.RESTORE_BEGIN_CATCH_UP, since, by)
        shares = [(slug, environment) for slug in self._slugs for environment in Environment]
        hastened = sum([await self._hasten(*share) for share in shares])
        begun(hastened)
        found: list[str] = []
        unanswered: list[str] = []
        looked_at, closed = 0, await self._closed()
        gate, paces = asyncio.Semaphore(AT_ONCE), _Paces(lambda: Pace(RATE))
        async for payments in self._open_then(since):
            looked_at += len(payments)
            looks = (self._look(one, since, gate, paces, closed) for one in payments)
            for payment, seen in zip(payments, await asyncio.gather(*looks), strict=True):
                found += seen.found
                unanswered += [payment.reference] if seen.is_unanswered else []
        done = CaughtUp(hastened, looked_at, tuple(found), tuple(unanswered))
        counted = {"hastened": done.hastened, "found": len(done.found), "unanswered": len(done.unanswered)}
        changes = {name: {"before": None, "after": number} for name, number in counted.items()}
        await self._record(Action.RESTORE_CATCH_UP, since, by, changes)
        return done

    @property
    def _slugs(self) -> list[str]:
        return [slug for slug in self.payment_options.providers if slug != SANDBOX_SLUG]

    async def _hasten(self, slug: str, environment: Environment) -> int:
        hastened = 0
        while done := await in_transaction(
            self.store, lambda tx: tx.attempts.hasten_checks(slug, environment, self.clock.now())
        ):
            hastened += done
        return hastened

    async def _open_then(self, since: datetime) -> AsyncIterator[list[Payment]]:
        until, reference = since, ""

        async def next_page(tx: Transaction) -> list[Payment]:
            return await tx.upkeep.list_initiated(until, reference, BATCH)

        while payments := await in_transaction(self.store, next_page):
            yield payments
            until, reference = payments[-1].expires_at, payments[-1].reference

    @retry_on_conflict
    async def _closed(self) -> set[str]:
        """The providers whose credentials are on file and do not open, as a key is not configured."""
        async with self.store.begin() as tx:
            gateways = [await tx.gateways.by_slug(slug) for slug in self._slugs]
        filed = [one for one in gateways if one is not None and one.has_credentials]
        return {one.slug for one in filed if not self.payment_options.gateway_credentials.current(one)}

    async def _look(
        self, payment: Payment, since: datetime, gate: asyncio.Semaphore, paces: _Paces, closed: Collection[str]
    ) -> "_Seen":
        """Asks about the attempts in doubt, and every reference that the payment's next ones can have had: a refused
        one leaves a gap. A provider that does not answer is not asked again about the payment."""
        seen = _Seen([], is_unanswered=bool(closed) and not payment.is_test)
        choices, known = await self._choices(payment, since, closed)

        async def ask(attempt: Attempt) -> ProviderReport | None:
            await paces[attempt.gateway].wait()
            try:
                return await self.provider_calls.fetch(payment, attempt, choices[attempt.gateway], SOURCE)
            except ProviderFault:
                seen.is_unanswered = True
                del choices[attempt.gateway]
                return None

        async with gate:
            for attempt in known:
                if attempt.is_in_doubt and attempt.gateway in choices and (report := await ask(attempt)) is not None:
                    await self._settle(payment, attempt, report, since)
            for number in range(len(known) + 1, ATTEMPTS_MAX + 1):
                for slug in list(choices):
                    attempt = self._assumed_attempt(payment, number, choices[slug], slug, since)
                    report = await ask(attempt)
                    if report is not None and report.is_of_a_charge:
                        seen.found.append(attempt.provider_reference)
                        if await self._add(payment, attempt):
                            await self._settle(payment, attempt, report, since)
                        break
        return seen

    @retry_on_conflict
    async def _choices(
        self, payment: Payment, since: datetime, closed: Collection[str]
    ) -> tuple[dict[str, ChosenProvider], list[Attempt]]:
        """The providers by slug that may have been called for the payment, and its known attempts; those without an end
        are left in doubt."""
        if payment.is_test:
            return {}, []
        async with self.store.begin() as tx:
            await tx.payments.lock(payment.reference)
            attempts = await tx.attempts.of_payment(payment.reference)
            for attempt in attempts:
                if attempt.state in (AttemptState.CLAIMED, AttemptState.UNKNOWN) and attempt.gateway != SANDBOX_SLUG:
                    await tx.attempts.save(attempt.leave_in_doubt(since), attempt.token)
            known = await tx.attempts.of_payment(payment.reference)
            asked = [slug for slug in self._slugs if slug not in closed]
            found = {slug: await self.payment_options.of_slug(tx, slug, payment.environment) for slug in asked}
        return {slug: choice for slug, choice in found.items() if choice is not None}, known

    def _assumed_attempt(
        self, payment: Payment, number: int, choice: ChosenProvider, slug: str, since: datetime
    ) -> Attempt:
        now = self.clock.now()
        claim = Attempt.claim(
            payment,
            number,
            gateway=slug,
            gateway_id=choice.gateway_id,
            scenario=None,
            token=self.entropy.hex(16),
            now=now,
            account=choice.account(payment.environment),
        )
        return claim.leave_unknown(now, self.entropy.chance()).leave_in_doubt(since)

    async def _settle(self, payment: Payment, attempt: Attempt, report: ProviderReport, since: datetime) -> None:
        """The payer was handed off while the window was open, so the report is judged as of the restored instant."""
        await self.settlement.report(
            report,
            attempt.gateway,
            payment.environment,
            SOURCE,
            asked=attempt,
            as_of=max(since, payment.created_at),
        )

    @retry_on_conflict
    async def _add(self, payment: Payment, attempt: Attempt) -> bool:
        """False when another process continued the payment meanwhile."""
        async with self.store.begin() as tx:
            locked = await tx.payments.lock(payment.reference)
            known = len(await tx.attempts.of_payment(payment.reference))
            if locked is None or locked.status is not Status.INITIATED or attempt.number <= known:
                return False
            for number in range(known + 1, attempt.number):
                name = provider_reference(payment.reference, number)
                # The provider has no such charge, so nobody was sent there.
                missed = with_changes(attempt, number=number, provider_reference=name, handed_off_at=None)
                await tx.attempts.add(missed.refuse())
            await tx.attempts.add(attempt)
            return True

    async def _record(self, action: Action, since: datetime, by: Actor, changes: Changes | None = None) -> None:
        at = since.isoformat(timespec="seconds")
        await in_transaction(self.store, lambda tx: self.record(tx, by, action, at, changes))


@dataclass
class _Seen:
    found: list[str]
    is_unanswered: bool = False


def catch_up(options: argparse.Namespace, settings: Settings) -> int:
    since = parse_instant(options.since, "since")

    def begun(hastened: int) -> None:
        say(f"{hastened} charges that were known are asked about as soon as a worker runs.")
        say(f"Asking each provider {ATTEMPTS_MAX} times about each payment that was open, {RATE} times a second ...")

    async def act(url: str) -> CaughtUp:
        async with running(settings, url) as services:
            return await catch_up_over(services).run(since, by=operator(), begun=begun)

    with database(settings) as url:
        done = asyncio.run(act(url))
    say(f"{done.looked_at} payments were open: {len(done.found)} charges of theirs were unknown here, and are no more.")
    for reference in done.found:
        say(f"        {reference}")
    if done.unanswered:
        say(f"{len(done.unanswered)} of their providers did not answer, or have credentials that do not open here:")
        say("run this again before servers start, with the servers' PAYAGG_ENCRYPTION_KEYS.")
        for reference in done.unanswered:
            say(f"        {reference}")
    return 1 if done.unanswered else 0


def catch_up_over(core: Services) -> CatchUp:
    return CatchUp(core.store, core.clock, core.entropy, core.payment_options, core.provider_calls, core.settlement)
