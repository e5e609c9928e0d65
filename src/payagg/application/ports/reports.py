"""What lists and reports need: search, anomalies, adjustments and reconciliation runs."""

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

# Bytes of metadata on one page: what is rendered at once, while all other callers of the process wait.
PAGE_BYTES = 128 * 1024


class PaymentSearchRepository(Protocol):
    """Payments by what they have in common. A filter by idempotency key needs the business too."""

    async def page(
        self, wanted: PaymentFilter, now: datetime, after: PaymentCursor | None, limit: int
    ) -> tuple[list[Payment], bool]:
        """At most `limit`, and whether there are more: newest first, strictly after the cursor, as stored; `now`
        decides what has expired. A page ends early with the payment whose metadata takes it to PAGE_BYTES. None is
        shown while a transaction that may still commit an earlier one is open, so a cursor never passes a payment by;
        what is looked up by reference or idempotency key is shown at once."""

    async def totals(self, wanted: PaymentFilter, now: datetime, most: int) -> list[PaymentTotal]:
        """By day, then status in the machine's order, for a filter by business, environment, status and time alone;
        reads the entry of every payment that is counted, and of no more than `most`."""


@dataclass(frozen=True)
class AnomalyFilter:
    """None lets any through. `after` is the id of the last one of the page before."""

    status: AnomalyStatus | None = None
    kind: AnomalyKind | None = None
    reference: str | None = None
    after: str | None = None
    severity: Severity | None = None
    assignee: str | None = None

    @property
    def kinds(self) -> tuple[AnomalyKind, ...] | None:
        """Those that `kind` and `severity` let through; None = all."""
        if self.severity is None:
            return None if self.kind is None else (self.kind,)
        of_severity = [kind for kind in AnomalyKind if severity_of(kind) is self.severity]
        return tuple(kind for kind in of_severity if self.kind in (None, kind))


@dataclass(frozen=True)
class AdjustmentFilter:
    """`after` is the id of the last one of the page before."""

    business_id: str
    environment: Environment
    needs_attention: bool = False  # only those that do
    after: str | None = None


class AnomalyRepository(Protocol):
    async def add(self, anomaly: Anomaly) -> None: ...

    async def last_id(self) -> str | None:
        """The greatest id."""

    async def of_payment(self, reference: str) -> list[Anomaly]:
        """Newest first, at most 1,000."""

    async def of_payments(self, references: Collection[str]) -> list[Anomaly]:
        """Of each payment as `of_payment`."""

    async def lock(self, anomaly_id: str) -> Anomaly | None: ...

    async def save(self, anomaly: Anomaly) -> None:
        """Only what people do about it; the fact itself cannot change."""

    async def notify(self, anomaly_id: str, sequence: int) -> None:
        """Writes the number of the event that told the merchant, once. Call under the payment's lock."""

    async def page(self, wanted: AnomalyFilter, limit: int) -> list[Anomaly]:
        """Newest first: ids are ordered by time."""

    async def count_open(self) -> dict[AnomalyKind, int]:
        """How many of each kind are not closed."""


class AdjustmentRepository(Protocol):
    """What happened to the money of settled payments."""

    async def page(self, wanted: AdjustmentFilter, limit: int) -> list[Adjustment]:
        """Those an event told, newest first by the latest fact of each."""

    async def totals(self, wanted: PaymentFilter) -> list[AdjustmentTotal]:
        """The same added up by day and kind, in this order; `wanted` says whose, of which environment and of what time,
        which is the adjustments' own."""


class ReconciliationRepository(Protocol):
    """Runs, their findings, and what of our payments they compare."""

    async def add(self, run: ReconciliationRun) -> None: ...

    async def claim(self, run: ReconciliationRun, stale: datetime) -> str | None:
        """Adds the run and returns its id, unless its `claim` is taken: then that run begins anew and its id is
        returned where it has not ended and began before `stale`, and None otherwise."""

    async def get(self, run_id: str) -> ReconciliationRun | None: ...

    async def end(self, run: ReconciliationRun, findings: Sequence[ReconciliationFinding]) -> None:
        """Its end and totals, once, and all that it found."""

    async def page(self, after: str | None, limit: int) -> list[ReconciliationRun]:
        """Newest first, strictly older than the id `after`."""

    async def findings(self, run_id: str, after: int, limit: int) -> list[ReconciliationFinding]:
        """By number, past `after`."""

    async def handed_off(
        self, gateway: str, environment: Environment, since: datetime, until: datetime, after: str, limit: int
    ) -> list[tuple[datetime, OurPayment]]:
        """Payments whose payer was sent to the gateway from `since` on and before `until`, with that instant, in the
        order of both; of those sent at `since` itself the ones past the reference `after`."""

    async def of_gateway(self, gateway: str, environment: Environment, references: Collection[str]) -> list[OurPayment]:
        """Those of these references that are payments of the gateway."""

    async def unknown(self, provider_references: Collection[str]) -> list[Anomaly]:
        """Anomalies without a payment that tell of these."""
