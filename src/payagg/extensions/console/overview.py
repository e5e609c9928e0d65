"""A business's overview: payments and money per day beside the days before, by gateway, and what LIVE still lacks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any

from litestar import Response

from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import Status
from payagg.domain.payment_search import PAGE_MAX
from payagg.domain.values import Environment
from payagg.extensions.console.names import names_of
from payagg.extensions.console.page_request import BASE, BusinessContext, PageRequest, Pages, business_context

routes = Pages("merchant")
DAYS = (7, 14, 30)
# Successes at the bottom of each bar.
STATUSES = ["SUCCESS", "PENDING", "INITIATED", "FAILED", "REVERSED"]
ENDED = {status.value for status in Status} - {"PENDING", "INITIATED"}


@dataclass(frozen=True)
class DayTotals:
    """The payments of one day by status, each of STATUSES: how many, and their kobo."""

    day: date
    counts: dict[str, int]
    amounts: dict[str, int]

    @property
    def count(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class Period:
    """Days in a row, oldest first."""

    days: Sequence[DayTotals]

    @property
    def totals(self) -> dict[str, tuple[int, int]]:
        """By status, in the order of STATUSES, without empty ones."""
        added = {one: [(day.counts[one], day.amounts[one]) for day in self.days] for one in STATUSES}
        return {
            status: (sum(count for count, _ in each), sum(amount for _, amount in each))
            for status, each in added.items()
            if any(count for count, _ in each)
        }

    @property
    def count(self) -> int:
        return sum(count for count, _ in self.totals.values())

    @property
    def paid(self) -> int:
        return self.totals.get("SUCCESS", (0, 0))[1]

    @property
    def rate(self) -> float | None:
        """Per cent of ended payments."""
        ended = sum(count for status, (count, _) in self.totals.items() if status in ENDED)
        return 100 * self.totals.get("SUCCESS", (0, 0))[0] / ended if ended else None

    def fold_days(self) -> Iterator[list[DayTotals]]:
        """Newest first: each day with payments by itself, consecutive days without any together."""
        for _, days in groupby(reversed(self.days), key=lambda day: day.count and day.day):
            yield list(days)


@routes.page(BASE)
async def overview(request: PageRequest) -> Response[bytes]:
    context = await business_context(request)
    asked = request.query("days")
    days = int(asked) if asked in {str(number) for number in DAYS} else DAYS[1]
    today = request.services.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=days - 1)
    shown = await _period(request, context, first, days)
    before = await _period(request, context, first - timedelta(days=days), days)
    is_empty_live = not shown.count and context.environment == Environment.LIVE.value
    facts = {
        "shown": shown,
        "before": before,
        "counts": chart([(one.day, one.counts) for one in shown.days], [one.count for one in before.days]),
        "money": chart(
            [(one.day, {"SUCCESS": one.amounts["SUCCESS"]}) for one in shown.days],
            [one.amounts["SUCCESS"] for one in before.days],
        ),
        "gateways": await _gateways(request, context, first, days) if shown.paid else None,
        "checklist": await _checklist(request, context) if is_empty_live else None,
    }
    return request.page("overview", {"context": context, "section": "", "days": days, "choices": DAYS, **facts})


def chart(days: Sequence[tuple[date, Mapping[str, int]]], before: Sequence[int]) -> dict[str, Any]:
    """A bar for each day with its values by status, oldest day and lowest status first, and a line through as many days
    `before`, on the scale of the highest; no line when all of those are zero. The template draws it as SVG, whose own
    co-ordinates are days and per cent: a library that draws in the browser would be the page's heaviest part."""
    most = max(*(sum(values.values()) for _, values in days), *before) or 1
    return {"days": days, "line": before if any(before) else [], "most": most}


def _range_query(context: BusinessContext, first: datetime, days: int) -> dict[str, str]:
    until = first + timedelta(days=days)
    return {"environment": context.environment, "from": first.isoformat(), "to": until.isoformat()}


async def _period(request: PageRequest, context: BusinessContext, first: datetime, days: int) -> Period:
    summary = await request.api.get(f"{context.api}/payments/summary", **_range_query(context, first, days))
    found = {(day["date"], one["status"]): one for day in summary["days"] for one in day["totals"]}

    def of(day: date, name: str) -> dict[str, int]:
        return {one: found[str(day), one][name] if (str(day), one) in found else 0 for one in STATUSES}

    each = [first.date() + timedelta(days=number) for number in range(days)]
    return Period([DayTotals(day, of(day, "count"), of(day, "amount")) for day in each])


async def _gateways(request: PageRequest, context: BusinessContext, first: datetime, days: int) -> dict[str, Any]:
    """What was paid by gateway, over the newest payments: those in one answer of the API's list."""
    asked = _range_query(context, first, days)
    found = await request.api.get(f"{context.api}/payments", **asked, status="SUCCESS", limit=PAGE_MAX)
    names, counts, amounts = await names_of(request, context), Counter[str](), Counter[str]()
    for one in found["payments"]:
        name = names.get(one["gateway"], one["gateway"]) or "none chosen"
        counts[name] += 1
        amounts[name] += one["amount"]
    paid = amounts.total()
    rows = [(name, counts[name], amount, round(100 * amount / paid, 1)) for name, amount in amounts.most_common()]
    return {"rows": rows, "newest": counts.total() if found["hasMore"] else None}


async def _checklist(request: PageRequest, context: BusinessContext) -> dict[str, bool | None]:
    """What LIVE needs, and whether it is there; None when the API does not show it, such as the keys of an inactive
    business."""
    live = Environment.LIVE
    is_active = context.business["status"] == BusinessStatus.ACTIVE.value
    keys = (await request.api.get(f"{context.api}/api-keys"))["live"] if is_active else None
    endpoints = await request.api.get(f"{context.api}/webhooks")
    return {
        "kyc": context.business["kycStatus"] == KycStatus.APPROVED.value,
        "gateway": await _has_gateway(request, context),
        "key": None if keys is None else any(one["status"] == "ACTIVE" for one in keys),
        "webhook": any(one["environment"] == live.value and one["isActive"] for one in endpoints),
    }


async def _has_gateway(request: PageRequest, context: BusinessContext) -> bool:
    """Whether initiate would find a LIVE gateway. No operation shows this before there is a LIVE key."""
    try:
        await request.services.payment_options.ensure_can_initiate(context.business["id"], Environment.LIVE, None)
    except Refusal as refusal:
        if refusal.code is not ErrorCode.NO_GATEWAY_AVAILABLE:
            raise
        return False
    return True
