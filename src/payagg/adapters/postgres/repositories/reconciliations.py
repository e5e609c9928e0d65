"""Reconciliations as rows, and what of our payments they compare."""

# ruff: noqa: S608 - our own words

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam

from payagg.adapters.postgres.repositories.anomalies import ANOMALY
from payagg.adapters.postgres.repositories.rows import PostgresRepository, RowMap
from payagg.adapters.postgres.statement import Statement, must_find
from payagg.application.ports.outside import Conflict
from payagg.domain.anomaly import Anomaly
from payagg.domain.payment import Status
from payagg.domain.reconciliation import LineKind, MatchBucket, OurPayment, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment

PAST_RUNS = "rec_g"  # above every id
RUN = RowMap(ReconciliationRun, "reconciliation_runs", environment=Environment)
FINDING = RowMap(ReconciliationFinding, "reconciliation_findings", bucket=MatchBucket, line_kind=LineKind)
_RUNS, _ADDED = RUN.table.c, RUN.insert()
ADD = Statement(_ADDED)
CLAIM = Statement(
    _ADDED.on_conflict_do_update(
        index_elements=["claim"],
        set_={"started_at": _ADDED.excluded.started_at},
        where=and_(_RUNS.ended_at.is_(None), _RUNS.started_at < bindparam("stale")),
    ).returning(_RUNS.id)
)
GET = RUN.query("WHERE id = :id")
_ENDED = RUN.update("ended_at", "totals").where(_RUNS.ended_at.is_(None)).returning(_RUNS.id).cte("ended")
END = Statement(must_find(_ENDED))
ADD_FINDING = Statement(FINDING.insert())
FINDINGS = FINDING.query("WHERE run_id = :run_id AND number > :after ORDER BY number LIMIT :limit")
_COMPARED = "p.reference, p.amount, p.status, p.environment"
HANDED_OFF = Statement(f"""
SELECT a.handed_off_at, {_COMPARED} FROM attempts a JOIN payments p ON p.reference = a.reference
WHERE a.gateway = :gateway AND a.environment = :environment AND a.handed_off_at IS NOT NULL
    AND (a.state <> 'REFUSED' OR a.confirmed_at IS NOT NULL)
    AND a.handed_off_at < :until AND (a.handed_off_at, a.reference) > (:since, :after)
ORDER BY a.handed_off_at, a.reference LIMIT :limit
""")
OF_GATEWAY = Statement(f"""
SELECT {_COMPARED} FROM payments p
WHERE p.reference = ANY(:references) AND p.gateway = :gateway AND p.environment = :environment
""")
UNKNOWN = ANOMALY.query("WHERE reference IS NULL AND details ->> 'providerReference' = ANY(:references)")
PAGE = RUN.query("WHERE id < :after ORDER BY id DESC LIMIT :limit")


class PostgresReconciliations(PostgresRepository):
    async def add(self, run: ReconciliationRun) -> None:
        self._connection.send(ADD, **RUN.values(run))

    async def claim(self, run: ReconciliationRun, stale: datetime) -> str | None:
        return await self._connection.value(CLAIM, stale=stale, **RUN.values(run))

    async def get(self, run_id: str) -> ReconciliationRun | None:
        return RUN.from_row(await self._connection.row(GET, id=run_id))

    async def end(self, run: ReconciliationRun, findings: Sequence[ReconciliationFinding]) -> None:
        already = Conflict("the reconciliation was ended by another")
        self._connection.send(END, or_else=already, id=run.id, ended_at=run.ended_at, totals=run.totals)
        for number, finding in enumerate(findings, 1):
            self._connection.send(ADD_FINDING, **FINDING.values(finding))
            if number % 1_000 == 0:
                await self._connection.flush()

    async def page(self, after: str | None, limit: int) -> list[ReconciliationRun]:
        return RUN.all(await self._connection.rows(PAGE, after=after or PAST_RUNS, limit=limit))

    async def findings(self, run_id: str, after: int, limit: int) -> list[ReconciliationFinding]:
        rows = await self._connection.rows(FINDINGS, run_id=run_id, after=after, limit=limit)
        return FINDING.all(rows)

    async def handed_off(
        self, gateway: str, environment: Environment, since: datetime, until: datetime, after: str, limit: int
    ) -> list[tuple[datetime, OurPayment]]:
        rows = await self._connection.rows(
            HANDED_OFF,
            gateway=gateway,
            environment=environment.value,
            since=since,
            until=until,
            after=after,
            limit=limit,
        )
        return [(at, _our_payment(row)) for at, *row in rows]

    async def of_gateway(self, gateway: str, environment: Environment, references: Collection[str]) -> list[OurPayment]:
        rows = await self._connection.rows(
            OF_GATEWAY, references=list(references), gateway=gateway, environment=environment.value
        )
        return [_our_payment(row) for row in rows]

    async def unknown(self, provider_references: Collection[str]) -> list[Anomaly]:
        return ANOMALY.all(await self._connection.rows(UNKNOWN, references=list(provider_references)))


def _our_payment(row: Sequence[Any]) -> OurPayment:
    reference, amount, status, environment = row
    return OurPayment(reference, amount, Status(status), Environment(environment))
