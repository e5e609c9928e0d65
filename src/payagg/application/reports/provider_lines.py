"""What a provider's lists say of the days of a reconciliation, and of money that changed since."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from payagg.application.ports.providers import ProviderLists
from payagg.domain.reconciliation import LineKind, ProviderLine, ReconciliationRun

# A provider dates a charge by its own clock, shortly before or after our hand-off: lines this long before and after the
# days are read too, and count when their payment belongs to the days.
MARGIN = timedelta(hours=1)
# Refunds and disputes change after the day that lists them, so they are read again this far back. These are no part of
# a run's sums, and a finding only when they are new.
LOOK_BACK = {LineKind.REFUND: timedelta(days=30), LineKind.DISPUTE: timedelta(days=90)}
Progress = Callable[[str, int, int | None], None]  # which list, lines so far, of how many
_Lines = dict[tuple[LineKind, str], ProviderLine]


@dataclass(frozen=True)
class ReadLines:
    lines: Sequence[ProviderLine]
    unreadable: Sequence[str]
    has_charges: bool
    earlier: Collection[tuple[LineKind, str]] = ()  # of `lines`, those from before the days


def silent(_list: str, _done: int, _total: int | None) -> None:
    """The default progress: none."""


async def read_lists(
    run: ReconciliationRun, lists: ProviderLists, credentials: Mapping[str, str], progress: Progress = silent
) -> ReadLines:
    since, until = days_of(run)
    # A list that grows while it is read returns a line twice.
    lines: _Lines = {}
    earlier: _Lines = {}
    unreadable: list[str] = []
    margins = {kind: MARGIN if kind is LineKind.CHARGE else timedelta(0) for kind in lists.kinds}
    spans = [(kind, since - margin, until + margin) for kind, margin in margins.items()]
    # Not every line has an instant, so the requested range decides which are earlier ones.
    spans += [(kind, since - LOOK_BACK[kind], since) for kind in lists.kinds if kind in LOOK_BACK]
    for kind, begin, end in spans:
        is_earlier, read = end == since, 0
        async for page in lists.lines(kind, begin, end, credentials, run.environment):
            (earlier if is_earlier else lines).update((key_of(line), line) for line in page.lines)
            unreadable += [] if is_earlier else page.unreadable  # which was a finding on its own day
            read += len(page.lines) + len(page.unreadable)
            progress(f"earlier {kind.value}" if is_earlier else kind.value, read, page.total)
    has_charges = LineKind.CHARGE in lists.kinds
    return ReadLines(list((earlier | lines).values()), unreadable, has_charges, earlier.keys() - lines.keys())


def days_of(run: ReconciliationRun) -> tuple[datetime, datetime]:
    """Their first instant, and the first after them."""
    since, last = (datetime.combine(day, time(), UTC) for day in (run.first_day, run.last_day))
    return since, last + timedelta(days=1)


def is_within(line: ProviderLine, since: datetime, until: datetime) -> bool:
    return line.kind is not LineKind.CHARGE or line.at is None or since <= line.at < until


def key_of(line: ProviderLine) -> tuple[LineKind, str]:
    return line.kind, line.id
