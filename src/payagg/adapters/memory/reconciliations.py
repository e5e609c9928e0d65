"""Reconciliations in memory."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from payagg.adapters.memory.state import BrokenRule, MemoryRepository
from payagg.domain.anomaly import Anomaly
from payagg.domain.payment import Payment
from payagg.domain.reconciliation import OurPayment, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment


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
            if (at, attempt.reference) > (since, after) and at < until:
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
