"""The list of payments, as merchants and administrators see it, and what both show of one payment."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from litestar import Response

from payagg.domain.payment import Status
from payagg.entrypoints.http.console.api import ApiRefused
from payagg.entrypoints.http.console.visit import PageVisit

FILTERS = ("status", "from", "to", "reference", "email", "idempotencyKey")
EXPORTED = ("status", "from", "to")
UNEXPORTED = ("reference", "email", "idempotencyKey")
OPEN = ("INITIATED", "PENDING")
LIMIT = 50


async def list_page(
    visit: PageVisit, path: str, fixed: Mapping[str, str], names: tuple[str, ...], facts: Mapping[str, Any]
) -> Response[bytes]:
    """A page of the list at `path` of the API, filtered by the page's own parameters `names`; `fixed` are the API's
    alone. What the API refuses of a filter is said above the list."""
    wanted = asked(visit, names)
    after = visit.query("after")
    shown: dict[str, Any] = {"payments": [], "nextCursor": None, "hasMore": False}
    try:
        query: dict[str, str | int | None] = {**fixed, **instants(wanted), "after": after, "limit": LIMIT}
        shown = await visit.api.get(path, **query)
    except ApiRefused as refused:
        if refused.status != 400:
            raise
        visit = replace(visit, problem=refused)
    kept = {name: value for name, value in wanted.items() if value}
    return visit.page(
        "payments",
        {
            "payments": shown["payments"],
            "wanted": wanted,
            "statuses": [status.value for status in Status],
            "first": f"?{urlencode(kept)}" if after else None,
            "next": f"?{urlencode({**kept, 'after': shown['nextCursor']})}" if shown["hasMore"] else None,
            "export": urlencode({name: kept[name] for name in names if name in kept and name not in UNEXPORTED}),
            **facts,
        },
    )


def asked(visit: PageVisit, names: tuple[str, ...]) -> dict[str, str]:
    """The parameters of the page's address by their names, empty where they are not given."""
    return {name: visit.query(name).strip() for name in names}


def instants(wanted: Mapping[str, str]) -> dict[str, str]:
    """The same for the API: a day is an instant there, and the last day is included here."""
    return {**wanted, "from": _day(wanted["from"], 0), "to": _day(wanted["to"], 1)}


def _day(text: str, later: int) -> str:
    try:
        return f"{date.fromisoformat(text) + timedelta(days=later)}T00:00:00Z" if text else ""
    except (ValueError, OverflowError):
        return text  # which the API refuses by name


def story_facts(visit: PageVisit, story: Mapping[str, Any]) -> dict[str, Any]:
    """What the page of one payment shows beside the story itself. It renews itself while something may still happen."""
    payment = story["payment"]
    is_open = payment["status"] in OPEN
    waits = any(one["status"] == "PENDING" for one in story["deliveries"])
    checkout = f"{visit.services.settings.base_url}/checkout/{payment['reference']}"
    return {"story": story, "is_live": is_open or waits, "checkout_url": checkout if is_open else None}
