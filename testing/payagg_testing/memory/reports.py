"""Lists and reports in memory: payments searched, anomalies, adjustments and reconciliations."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import accumulate, islice

import msgspec

from payagg.application.ports.reports import PAGE_BYTES, AdjustmentFilter, AnomalyFilter
from payagg.domain.adjustment import Adjustment, AdjustmentTotal, added_up, told_of
from payagg.domain.anomaly import ANOMALY, Anomaly, AnomalyKind, AnomalyStatus
from payagg.domain.attempt import AttemptState
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import EARLIEST, LATEST, PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.reconciliation import OurPayment, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment
from payagg_testing.memory.state import BrokenRule, MemoryRepository


class MemoryPaymentSearch(MemoryRepository):
    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> tuple[list[Payment], PaymentCursor | None]:
        found = [payment for payment in self.state.payments.values() if wanted.matches(payment, now)]
        if wanted.idempotency_key is not None:
            found = [payment for payment in found if payment.reference in self.state.idempotency_keys.values()]
        older = [payment for payment in found if after is None or PaymentCursor.of(payment) < after]
        newest = sorted(older, key=PaymentCursor.of, reverse=True)
        sizes = [len(msgspec.json.encode(payment.metadata)) if payment.metadata else 0 for payment in newest[:limit]]
        fits = sum(before < PAGE_BYTES for before in accumulate(sizes[:-1], initial=0)) if sizes else 0
        return newest[:fits], PaymentCursor.of(newest[fits - 1]) if fits < len(newest) else None

    async def totals(self, wanted: PaymentFilter, now: datetime, most: int) -> list[PaymentTotal]:
        groups: defaultdict[tuple[date, Status], list[Payment]] = defaultdict(list)
        matching = (payment for payment in self.state.payments.values() if wanted.matches(payment, now))
        for payment in islice(matching, most):
            groups[payment.created_at.astimezone(UTC).date(), payment.as_of(now).status].append(payment)
        order = {status: number for number, status in enumerate(Status)}
        return [_total(*key, groups[key]) for key in sorted(groups, key=lambda key: (key[0], order[key[1]]))]


def _total(day: date, status: Status, payments: list[Payment]) -> PaymentTotal:
    fees = [payment.fee for payment in payments if payment.fee is not None]
    nets = [payment.net_amount for payment in payments if payment.net_amount is not None]
    return PaymentTotal(
        day=day,
        status=status,
        count=len(payments),
        amount=sum(payment.amount for payment in payments),
        fee=sum(fees) if fees else None,
        net_amount=sum(nets) if nets else None,
        with_fee=len(fees),
    )


OF_PAYMENT_MAX = 1_000


class MemoryAnomalies(MemoryRepository):
    async def add(self, anomaly: Anomaly) -> None:
        self.state.anomalies[anomaly.id] = anomaly

    async def last_id(self) -> str | None:
        return max(self.state.anomalies, default=None)

    async def of_payment(self, reference: str) -> list[Anomaly]:
        return await self.page(AnomalyFilter(reference=reference), OF_PAYMENT_MAX)

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        return [anomaly for reference in references for anomaly in await self.of_payment(reference)]

    async def lock(self, anomaly_id: str) -> Anomaly | None:
        return self.state.anomalies.get(anomaly_id)

    async def save(self, anomaly: Anomaly) -> None:
        before = self.state.anomalies[anomaly.id]
        is_worked_on = before.status is anomaly.status and before.status not in ANOMALY.final
        if not is_worked_on and (before.status.value, anomaly.status.value) not in ANOMALY.pairs:
            raise BrokenRule("an anomaly cannot make that move")
        self.state.anomalies[anomaly.id] = anomaly

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        before = self.state.anomalies[anomaly_id]
        if before.event_sequence is not None:
            raise BrokenRule("an anomaly is told once")
        self.state.anomalies[anomaly_id] = with_changes(before, event_sequence=sequence)

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        found = [
            anomaly
            for anomaly in self.state.anomalies.values()
            if wanted.status in (None, anomaly.status)
            and (wanted.kinds is None or anomaly.kind in wanted.kinds)
            and wanted.assignee in (None, anomaly.assignee)
            and wanted.reference in (None, anomaly.reference)
            and (wanted.after is None or anomaly.id < wanted.after)
        ]
        return sorted(found, key=lambda anomaly: anomaly.id, reverse=True)[:limit]

    async def count_open(self) -> dict[tuple[AnomalyKind, Environment | None], int]:
        unclosed = (one for one in self.state.anomalies.values() if one.status is not AnomalyStatus.CLOSED)
        return dict(Counter((one.kind, one.environment) for one in unclosed))

    async def forget(self, before: datetime, limit: int) -> int:
        old = [
            anomaly.id
            for anomaly in self.state.anomalies.values()
            if anomaly.closed_at is not None
            and anomaly.closed_at < before
            and anomaly.environment is Environment.SANDBOX
            and anomaly.event_sequence is None
        ][:limit]
        for id in old:
            del self.state.anomalies[id]
        return len(old)


class MemoryAdjustments(MemoryRepository):
    async def page(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        found = [
            one
            for payment, one in self._published_rows()
            if (payment.business_id, payment.environment) == (wanted.business_id, wanted.environment)
            and (one.needs_attention or not wanted.needs_attention)
            and (wanted.after is None or one.id < wanted.after)
        ]
        return sorted(found, key=lambda one: one.id, reverse=True)[:limit]

    async def totals(self, wanted: PaymentFilter) -> list[AdjustmentTotal]:
        since, until = wanted.since or EARLIEST, wanted.until or LATEST
        return added_up(
            (
                one.at.astimezone(UTC).date(),
                self.state.anomalies[one.id].kind,
                one.state,
                payment.status is Status.REVERSED and not self._is_of_second(one),
                1,
                one.amount or 0,
            )
            for payment, one in self._published_rows()
            if wanted.business_id in (None, payment.business_id)
            and wanted.environment in (None, payment.environment)
            and since <= one.at < until
        )

    def _is_of_second(self, adjustment: Adjustment) -> bool:
        """Whether a charge brought it that paid beside the one that the payment's status is about."""
        facts = [fact for fact in self.state.anomalies.values() if fact.reference == adjustment.reference]
        own = self.state.anomalies[adjustment.id].details.get("providerReference")
        second = [fact for fact in facts if fact.kind is AnomalyKind.SECOND_CHARGE]
        return own is not None and any(fact.details.get("providerReference") == own for fact in second)

    def _published_rows(self) -> Iterator[tuple[Payment, Adjustment]]:
        facts: defaultdict[str, list[Anomaly]] = defaultdict(list)
        for anomaly in self.state.anomalies.values():
            if anomaly.business_id is not None and anomaly.reference in self.state.payments:
                facts[anomaly.reference].append(anomaly)
        for reference, own in facts.items():
            payment = self.state.payments[reference]
            yield from ((payment, one) for one in told_of(own, payment.amount))


class MemoryReconciliations(MemoryRepository):
    async def add(self, run: ReconciliationRun) -> None:
        self.state.reconciliations[run.id] = run

    async def claim(self, run: ReconciliationRun, stale: datetime) -> str | None:
        held = next((one for one in self.state.reconciliations.values() if one.claim == run.claim), None)
        if held is None:
            await self.add(run)
            return run.id
        if held.ended_at is not None or held.started_at >= stale:
            return None
        self.state.reconciliations[held.id] = replace(held, started_at=run.started_at)
        return held.id

    async def get(self, run_id: str) -> ReconciliationRun | None:
        return self.state.reconciliations.get(run_id)

    async def end(self, run: ReconciliationRun, findings: Sequence[ReconciliationFinding]) -> None:
        before = self.state.reconciliations[run.id]
        if before.ended_at is not None:
            raise BrokenRule("a reconciliation ends once")
        self.state.reconciliations[run.id] = replace(before, ended_at=run.ended_at, totals=run.totals)
        self.state.findings |= {(finding.run_id, finding.number): finding for finding in findings}

    async def page(self, after: str | None, limit: int) -> list[ReconciliationRun]:
        found = [run for run in self.state.reconciliations.values() if after is None or run.id < after]
        return sorted(found, key=lambda run: run.id, reverse=True)[:limit]

    async def findings(self, run_id: str, after: int, limit: int) -> list[ReconciliationFinding]:
        found = [one for one in self.state.findings.values() if one.run_id == run_id and one.number > after]
        return sorted(found, key=lambda finding: finding.number)[:limit]

    async def handed_off(
        self, gateway: str, environment: Environment, since: datetime, until: datetime, after: str, limit: int
    ) -> list[tuple[datetime, OurPayment]]:
        found = []
        for attempt in self.state.attempts.values():
            payment, at = self.state.payments.get(attempt.reference), attempt.handed_off_at
            if payment is None or at is None or attempt.gateway != gateway or payment.environment is not environment:
                continue
            was_there = attempt.state is not AttemptState.REFUSED or attempt.confirmed_at is not None
            if was_there and (at, attempt.reference) > (since, after) and at < until:
                found.append((at, _our_payment(payment)))
        return sorted(found, key=lambda one: (one[0], one[1].reference))[:limit]

    async def of_gateway(self, gateway: str, environment: Environment, references: Collection[str]) -> list[OurPayment]:
        found = (self.state.payments[reference] for reference in references if reference in self.state.payments)
        return [_our_payment(one) for one in found if (one.gateway, one.environment) == (gateway, environment)]

    async def unknown(self, provider_references: Collection[str]) -> list[Anomaly]:
        strangers = (anomaly for anomaly in self.state.anomalies.values() if anomaly.reference is None)
        return [one for one in strangers if one.details.get("providerReference") in provider_references]


def _our_payment(payment: Payment) -> OurPayment:
    return OurPayment(payment.reference, payment.amount, payment.status, payment.environment)
