"""Ports of lists and reports: search, anomalies, adjustments and reconciliation runs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from payagg.domain.adjustment import Adjustment, AdjustmentTotal
from payagg.domain.anomaly import Anomaly, AnomalyKind, AnomalyStatus, Severity, severity_of
from payagg.domain.payment import Payment
from payagg.domain.payment_search import PaymentCursor, PaymentFilter, PaymentTotal
from payagg.domain.reconciliation import OurPayment, ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment

# Bytes of metadata on one page, which is rendered at once while the process's other callers wait.
PAGE_BYTES = 128 * 1024


class PaymentSearchRepository(Protocol):
    """Payments by filter. A filter by idempotency key needs the business too."""

    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> tuple[list[Payment], PaymentCursor | None]:
        """At most `limit`, newest first, strictly after the cursor, as stored, and where the next page begins, None at
        the end; `now` decides what has expired. A page ends early with the payment whose metadata takes it to
        PAGE_BYTES; one by status also where it has looked at so many payments, and may be empty. No payment is listed
        while a transaction that may commit an earlier one is open, so a cursor never skips one; a look-up by reference
        or idempotency key shows it at once."""

    async def totals(self, wanted: PaymentFilter, now: datetime, most: int) -> list[PaymentTotal]:
        """By day, then status in the machine's order, for a filter by business, environment, status and time only.
        Reads each counted payment, at most `most`."""


@dataclass(frozen=True)
class AnomalyFilter:
    """None = no filter. `after` is the last id of the page before."""

    status: AnomalyStatus | None = None
    kind: AnomalyKind | None = None
    reference: str | None = None
    after: str | None = None
    severity: Severity | None = None
    assignee: str | None = None

    @property
    def kinds(self) -> tuple[AnomalyKind, ...] | None:
        """The kinds that `kind` and `severity` select; None = all."""
        if self.severity is None:
            return None if self.kind is None else (self.kind,)
        of_severity = [kind for kind in AnomalyKind if severity_of(kind) is self.severity]
        return tuple(kind for kind in of_severity if self.kind in (None, kind))


@dataclass(frozen=True)
class AdjustmentFilter:
    """`after` is the last id of the page before."""

    business_id: str
    environment: Environment
    needs_attention: bool = False  # only those that need it
    after: str | None = None


class AnomalyRepository(Protocol):
    async def add(self, anomaly: Anomaly) -> None: ...

    async def last_id(self) -> str | None:
        """The greatest id."""

    async def of_payment(self, reference: str) -> list[Anomaly]:
        """Newest first, at most 1,000."""

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        """As `of_payment`, for each payment."""

    async def lock(self, anomaly_id: str) -> Anomaly | None: ...

    async def save(self, anomaly: Anomaly) -> None:
        """Saves only what people did about it; the fact itself cannot change."""

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        """Records the sequence of the event that notified the merchant, once. Call under the payment's lock."""

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        """Newest first: ids are ordered by time."""

    async def count_open(self) -> dict[tuple[AnomalyKind, Environment | None], int]:
        """The number of unclosed ones by kind and by their payment's environment, None without one."""

    async def forget(self, before: datetime, limit: int) -> int:
        """Removes those of SANDBOX that were closed before then and that no event told; how many. LIVE's stay."""


class AdjustmentRepository(Protocol):
    """Adjustments: what happened to the money of settled payments."""

    async def page(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        """Those sent by an event, newest first by the latest fact of each."""

    async def totals(self, wanted: PaymentFilter) -> list[AdjustmentTotal]:
        """Their totals by day and kind, in this order; `wanted` gives business, environment and time, which is the
        adjustments' own."""


class ReconciliationRepository(Protocol):
    """Runs, their findings, and the payments they compare."""

    async def add(self, run: ReconciliationRun) -> None: ...

    async def claim(self, run: ReconciliationRun, stale: datetime) -> str | None:
        """Adds the run and returns its id. When its `claim` is taken by a run that began before `stale` and has not
        ended, that run starts again and its id is returned; otherwise None."""

    async def get(self, run_id: str) -> ReconciliationRun | None: ...

    async def end(self, run: ReconciliationRun, findings: Sequence[ReconciliationFinding]) -> None:
        """Stores the run's end, totals and findings, once."""

    async def page(self, after: str | None, limit: int) -> list[ReconciliationRun]:
        """Newest first, strictly older than the id `after`."""

    async def findings(self, run_id: str, after: int, limit: int) -> list[ReconciliationFinding]:
        """By number, after `after`."""

    async def handed_off(
        self, gateway: str, environment: Environment, since: datetime, until: datetime, after: str, limit: int
    ) -> list[tuple[datetime, OurPayment]]:
        """Payments handed off to the gateway from `since` on and before `until`, with that instant, sorted by instant
        and reference; of those at `since` itself only references after `after`. Not one that may have been, was passed
        over and is not known to be paid there: another gateway's list has it."""

    async def of_gateway(self, gateway: str, environment: Environment, references: Collection[str]) -> list[OurPayment]:
        """The gateway's payments among these references."""

    async def unknown(self, provider_references: Collection[str]) -> list[Anomaly]:
        """Anomalies without a payment about these."""
