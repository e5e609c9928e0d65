"""A business's overview: payments per day, success rate, money per status."""

from datetime import timedelta
from typing import Any

from litestar import Response

from payagg.domain.payment import Status
from payagg.entrypoints.http.console.place import BASE, place_of
from payagg.entrypoints.http.console.plot import plot
from payagg.entrypoints.http.console.visit import PageVisit, page

DAYS = (7, 14, 30)
# What went well at the bottom of each bar.
STATUSES = ["SUCCESS", "PENDING", "INITIATED", "FAILED", "REVERSED"]
ENDED = {status.value for status in Status} - {"PENDING", "INITIATED"}


@page(BASE, "merchant")
async def overview(visit: PageVisit) -> Response[bytes]:
    place = await place_of(visit)
    asked = visit.query("days")
    days = int(asked) if asked in {str(number) for number in DAYS} else DAYS[1]
    today = visit.services.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    since, until = today - timedelta(days=days - 1), today + timedelta(days=1)
    query = {"environment": place.environment, "from": since.isoformat(), "to": until.isoformat()}
    summary = await visit.api.get(f"{place.api}/payments/summary", **query)
    return visit.page("overview", {"place": place, "section": "", "days": days, **facts(summary, since.date(), days)})


def facts(summary: dict[str, Any], first: Any, days: int) -> dict[str, Any]:
    """What the page shows of a summary: a row for each day, those without payments too, and totals by status."""
    by_day = {day["date"]: {one["status"]: one for one in day["totals"]} for day in summary["days"]}
    rows = [_row(str(first + timedelta(days=number)), by_day) for number in range(days)]
    totals = [_total(status, by_day) for status in STATUSES]
    money = sum(total["amount"] for total in totals) or 1
    totals = [{**total, "share": 100 * total["amount"] / money} for total in totals]
    ended = sum(total["count"] for total in totals if total["status"] in ENDED)
    paid = next(total for total in totals if total["status"] == "SUCCESS")
    return {
        "rows": rows,
        "totals": totals,
        "statuses": STATUSES,
        "count": sum(total["count"] for total in totals),
        "rate": 100 * paid["count"] / ended if ended else None,
        "paid": paid["amount"],
        "plot": plot(rows),
    }


def _row(day: str, by_day: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found = by_day.get(day, {})
    counts = {status: found[status]["count"] if status in found else 0 for status in STATUSES}
    return {"day": day, "counts": counts, "paid": found["SUCCESS"]["amount"] if "SUCCESS" in found else 0}


def _total(status: str, by_day: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found = [day[status] for day in by_day.values() if status in day]
    return {
        "status": status,
        "count": sum(one["count"] for one in found),
        "amount": sum(one["amount"] for one in found),
    }


routes = [overview]
