"""The week whose payments have partitions of their own, and what these are called."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

WEEK = timedelta(days=7)
NAME = re.compile("events_([a-z]{3})_([0-9]{8})")


@dataclass(frozen=True, order=True)
class Week:
    """The payments of one prefix and of seven days from a Monday, as their references say."""

    prefix: str
    monday: date

    @classmethod
    def of(cls, prefix: str, day: date) -> "Week":
        return cls(prefix, day - timedelta(days=day.weekday()))

    @classmethod
    def from_partition(cls, name: str) -> "Week | None":
        """None for a name of `events` that is no week's."""
        found = NAME.fullmatch(name)
        return found and cls(found[1].upper(), datetime.strptime(found[2], "%Y%m%d").replace(tzinfo=UTC).date())

    @property
    def end(self) -> date:
        return self.monday + WEEK

    @property
    def first_reference(self) -> str:
        """Just below every reference of the week; that of the next week is above them."""
        return f"{self.prefix}-{self.monday:%Y%m%d}"

    def next(self, number: int = 1) -> "Week":
        return Week(self.prefix, self.monday + number * WEEK)

    def table(self, parent: str) -> str:
        return f"{parent}_{self.prefix.lower()}_{self.monday:%Y%m%d}"
