"""Answers of reconciliations, for administrators."""

from datetime import date, datetime
from typing import Annotated, Any

from msgspec import Struct

from payagg.application.schemas.payment_search import KoboSum, exact
from payagg.application.schemas.views import id_form, view_of
from payagg.domain.reconciliation import ReconciliationFinding, ReconciliationRun
from payagg.domain.values import Environment

PAGE_DEFAULT = 50
PAGE_MAX = 100
COLUMNS = ("bucket", "reference", "providerReference", "kind", "lineId", "ourKobo", "theirKobo", "effect")
ReconciliationId = Annotated[str, id_form("rec", ["rec_0194bb8f3c0000000000000000000001"])]


class BucketView(Struct, rename="camel", frozen=True):
    """`ours` and `theirs` are kobo."""

    payments: int
    ours: KoboSum
    lines: int
    theirs: KoboSum


class ReconciliationView(Struct, rename="camel", frozen=True):
    """A gateway's days, both included. `source` is `list`, or `file` and the file's SHA-256. Without `endedAt` it is
    running, or was killed and can be repeated. `buckets` has the non-empty ones."""

    id: ReconciliationId
    gateway: str
    environment: Environment
    first_day: date
    last_day: date
    source: str
    started_by: str
    started_at: datetime
    ended_at: datetime | None
    buckets: dict[str, BucketView]

    @classmethod
    def of(cls, run: ReconciliationRun) -> "ReconciliationView":
        buckets = {
            bucket: BucketView(**{name: exact(value) for name, value in total.items()})
            for bucket, total in sorted(run.totals.items())
        }
        return view_of(cls, run, buckets=buckets)


class ReconciliationPage(Struct, rename="camel", frozen=True):
    """Newest first. Pass `nextCursor` as `after` to go on."""

    reconciliations: list[ReconciliationView]
    next_cursor: ReconciliationId | None
    has_more: bool


def cells_of(one: ReconciliationFinding) -> list[Any]:
    """A finding's values in the order of COLUMNS."""
    kind = one.line_kind.value if one.line_kind is not None else None
    told = (one.bucket.value, one.reference, one.provider_reference, kind, one.line_id)
    return [*told, one.ours, one.theirs, one.effect]
