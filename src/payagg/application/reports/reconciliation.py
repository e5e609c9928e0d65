"""Reconciliation with a provider's own lists or statement: each difference goes through the domain's `judge` and is
stored."""

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from hashlib import sha256
from typing import Any

import structlog

from payagg.application.gateways.payment_options import PaymentOptions
from payagg.application.payments.settlement import Settlement
from payagg.application.ports.elsewhere import NOWHERE, Elsewhere
from payagg.application.ports.outside import Unavailable
from payagg.application.ports.providers import ProviderLists
from payagg.application.ports.store import Transaction
from payagg.application.reports.export import lines as csv_lines
from payagg.application.reports.provider_lines import (
    Progress,
    ReadLines,
    days_of,
    is_within,
    key_of,
    read_lists,
    silent,
)
from payagg.application.schemas.operations import FINDING_COLUMNS, cells_of
from payagg.application.schemas.views import page_of
from payagg.application.use_case import UseCase, in_transaction, retry_on_conflict
from payagg.domain.anomaly import RECONCILIATION, Anomaly
from payagg.domain.audit import Actor, clock
from payagg.domain.errors import Refusal, invalid, must_exist
from payagg.domain.reconciliation import (
    NO_FINDING,
    BucketTotal,
    LineKind,
    Match,
    MatchBucket,
    OurPayment,
    ReconciliationFinding,
    ReconciliationRun,
    check_unit,
    fact_of,
    match_all,
    totals,
)
from payagg.domain.report import ProviderFault, ReportEffect
from payagg.domain.values import Environment

DAYS_MAX = 31
PAGE = 2_000  # payments, or references, of one transaction
BEGIN = time(2)  # UTC; when the worker reconciles yesterday, after the day's last checkouts
STALE = timedelta(hours=1)  # after which an unfinished run of the worker starts again
_Ended = tuple[ReconciliationRun, list[ReconciliationFinding]]
_Known = dict[str, list[dict[str, Any]]]  # evidence by the provider's reference
_log = structlog.get_logger("payagg.reconciliation")


@dataclass(frozen=True)
class ReconciliationRuns(UseCase):
    payment_options: PaymentOptions
    settlement: Settlement
    lists: Mapping[str, ProviderLists]
    elsewhere: Elsewhere = NOWHERE

    async def reconcile(
        self,
        gateway: str,
        environment: Environment,
        first_day: date,
        last_day: date,
        *,
        by: Actor,
        statement: bytes | None = None,
        progress: Progress = silent,
    ) -> _Ended:
        """The days, both included, by the provider's lists or by `statement`, a CSV file. Safe to repeat. Raises
        VALIDATION_ERROR, ProviderFault, or Unavailable; the run then stays without an end."""
        now = self.clock.now()
        lists = self.lists.get(gateway)
        if lists is None:
            raise invalid("gateway", f"Must be one of {', '.join(sorted(self.lists))}.")
        if not first_day <= last_day <= now.date():
            raise invalid("to", "Must not lie before `from` or ahead.")
        if last_day - first_day >= timedelta(days=DAYS_MAX):
            raise invalid("to", f"Must be at most {DAYS_MAX} days in all.")
        page = None if statement is None else lists.read_statement(statement, environment)
        source = "list" if statement is None else f"file {sha256(statement).hexdigest()}"
        run = self._new(gateway, environment, first_day, last_day, source, by, now)
        given = None if page is None else ReadLines(page.lines, page.unreadable, has_charges=True)
        credentials = await self._credentials(gateway, environment) if given is None else {}
        if credentials is None:
            raise invalid("gateway", f"Has no credentials for {environment.value}, or none that open here.")
        await in_transaction(self.store, lambda tx: tx.reconciliations.add(run))
        return await self._work(run, given or await read_lists(run, lists, credentials, progress))

    async def run_due(self) -> int:
        """Yesterday's LIVE payments of each provider that has lists and credentials, once over all workers; how many
        runs this one ended. A failed run is repeated after STALE."""
        now, done = self.clock.now(), 0
        if now.time() < BEGIN:
            return 0
        for gateway, lists in self.lists.items():
            credentials = await self._credentials(gateway, Environment.LIVE)
            run = await self._claim(gateway, now) if credentials is not None else None
            if run is None or credentials is None:
                continue
            try:
                await self._work(run, await read_lists(run, lists, credentials))
                done += 1
            except ProviderFault as fault:
                _log.warning("reconciliation postponed", gateway=gateway, reason=fault.kind.value)
        return done

    async def page(self, after: str | None, limit: int) -> tuple[Sequence[ReconciliationRun], str | None, bool]:
        """A page, newest first, the next one's cursor, and whether there is one."""
        found = await in_transaction(self.store, lambda tx: tx.reconciliations.page(after, limit + 1))
        return page_of(found, limit)

    async def get(self, run_id: str) -> ReconciliationRun:
        """Raises NOT_FOUND."""
        return must_exist(await in_transaction(self.store, lambda tx: tx.reconciliations.get(run_id)))

    async def findings_csv(self, run_id: str) -> AsyncGenerator[bytes, None]:
        """A run's findings as CSV with a header row, a page at a time. Raises NOT_FOUND."""
        await self.get(run_id)
        yield csv_lines([FINDING_COLUMNS])
        after = 0
        while True:
            async with self.store.begin() as tx:
                found = await tx.reconciliations.findings(run_id, after, PAGE)
            yield csv_lines(map(cells_of, found))
            if len(found) < PAGE:
                return
            after = found[-1].number

    def _new(
        self, gateway: str, environment: Environment, first: date, last: date, source: str, by: Actor, now: datetime
    ) -> ReconciliationRun:
        return ReconciliationRun(self.entropy.id("rec", now), gateway, environment, first, last, source, by.name, now)

    @retry_on_conflict
    async def _credentials(self, gateway: str, environment: Environment) -> Mapping[str, str] | None:
        if gateway not in self.payment_options.providers:
            return None
        async with self.store.begin() as tx:
            choice = await self.payment_options.of_slug(tx, gateway, environment)
        return choice.credentials if choice is not None else None

    @retry_on_conflict
    async def _claim(self, gateway: str, now: datetime) -> ReconciliationRun | None:
        yesterday = now.date() - timedelta(days=1)
        run = self._new(gateway, Environment.LIVE, yesterday, yesterday, "list", clock(RECONCILIATION), now)
        run = replace(run, claim=f"{gateway} {run.environment.value} {yesterday}")
        async with self.store.begin() as tx:
            run_id = await tx.reconciliations.claim(run, now - STALE)
        return replace(run, id=run_id) if run_id is not None else None

    async def _work(self, run: ReconciliationRun, read: ReadLines) -> _Ended:
        since, until = days_of(run)
        # Without a list of charges, absence cannot be judged.
        payments = await self._handed_off(run, since, until) if read.has_charges else {}
        within = set(payments)
        asked = {line.reference for line in read.lines} - within
        others = await self._of_gateway(run, sorted(asked))
        lines = [
            line
            for line in read.lines
            if run.source != "list" or line.reference in within or is_within(line, since, until)
        ]
        kept = {line.reference for line in lines}
        payments |= {one.reference: replace(one, is_within=False) for one in others if one.reference in kept}
        matches = match_all(lines, payments.values(), self.elsewhere.prefixes)
        if run.source != "list":
            check_unit(matches)
        known = await self._unknown(matches)
        told: set[str] = set()  # anomalies already matched to a refund's line
        listed = {line.id for line in lines if line.kind is LineKind.REFUND}
        findings = [
            ReconciliationFinding(run.id, number, MatchBucket.UNREADABLE, line_id=place)
            for number, place in enumerate(read.unreadable, 1)
        ]
        own = within | {line.reference for line in lines if key_of(line) not in read.earlier}
        counted: list[Match] = []
        for match in matches:
            payment = match.payment
            is_counted = payment.reference in own if payment else key_of(match.lines[0]) not in read.earlier
            counted += [match] if is_counted else []
            if match.bucket not in NO_FINDING:
                effect = await self._report(run, match, known, told, listed)
                if is_counted or effect != ReportEffect.UNCHANGED.value:
                    findings += match.findings(run.id, len(findings) + 1, effect)
        found = totals(counted)
        if read.unreadable:
            found[MatchBucket.UNREADABLE] = BucketTotal(lines=len(read.unreadable))
        ended = run.end(found, self.clock.now())
        await self._end(ended, findings)
        return ended, findings

    async def _handed_off(self, run: ReconciliationRun, since: datetime, until: datetime) -> dict[str, OurPayment]:
        found: dict[str, OurPayment] = {}
        after = ""

        async def next_page(tx: Transaction) -> list[tuple[datetime, OurPayment]]:
            return await tx.reconciliations.handed_off(run.gateway, run.environment, since, until, after, PAGE)

        while page := await in_transaction(self.store, next_page):
            found |= {payment.reference: payment for _, payment in page}
            since, after = page[-1][0], page[-1][1].reference
        return found

    async def _of_gateway(self, run: ReconciliationRun, references: Sequence[str]) -> list[OurPayment]:
        found: list[OurPayment] = []
        for start in range(0, len(references), PAGE):
            found += await self._some_of_gateway(run, references[start : start + PAGE])
        return found

    @retry_on_conflict
    async def _some_of_gateway(self, run: ReconciliationRun, references: Sequence[str]) -> list[OurPayment]:
        async with self.store.begin() as tx:
            return await tx.reconciliations.of_gateway(run.gateway, run.environment, references)

    @retry_on_conflict
    async def _unknown(self, matches: Iterable[Match]) -> _Known:
        """Known facts about money without a payment; a payment's facts are deduplicated by `Settlement`."""
        strangers = [match for match in matches if match.bucket is MatchBucket.THERE_ONLY]
        told = {report.provider_reference for match in strangers for report in match.reports}
        known: _Known = {reference: [] for reference in told}
        if told:
            async with self.store.begin() as tx:
                for anomaly in await tx.reconciliations.unknown(sorted(told)):
                    known[anomaly.details["providerReference"]].append(dict(anomaly.details))
        return known

    async def _report(
        self, run: ReconciliationRun, match: Match, known: _Known, told: set[str], listed: Collection[str]
    ) -> str | None:
        """The result of a match's reports: the first that changed something; None without any. `listed` are refunds'
        ids, `told` the anomalies that a refund's line is about."""

        def told_by(facts: Sequence[Anomaly]) -> Anomaly | None:
            return fact_of(match.lines[0], [one for one in facts if one.id not in told], listed)

        effects = []
        for report in match.reports:
            if match.bucket is MatchBucket.THERE_ONLY:
                facts, evidence = known[report.provider_reference], dict(report.evidence())
                if evidence in facts:
                    effects.append(ReportEffect.UNCHANGED)
                    continue
                facts.append(evidence)
            try:
                settled = await self.settlement.report(
                    report, run.gateway, run.environment, RECONCILIATION, told_by=told_by if match.is_refund else None
                )
            except Refusal as refusal:  # the payment moved to another cell
                return refusal.code.name
            told |= {settled.told_by.id} if settled.told_by is not None else set()
            effects.append(ReportEffect.UNCHANGED if settled.is_known else settled.effect)
        done = [effect for effect in effects if effect is not ReportEffect.UNCHANGED] or effects
        return done[0].value if done else None

    @retry_on_conflict
    async def _end(self, run: ReconciliationRun, findings: Sequence[ReconciliationFinding]) -> None:
        async with self.store.begin() as tx:
            stored = await tx.reconciliations.get(run.id)
            if stored is None or stored.ended_at is not None:
                raise Unavailable("another worker ended this reconciliation")
            await tx.reconciliations.end(run, findings)
