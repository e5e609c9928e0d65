"""Who tells the story of the examples: each call of the product is an operation by its id, and its answer is kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from payagg_testing.clocks import ManualClock

from payagg.application.payments.expiry import sweep_expired
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.app import api_routes
from tests.support.http_world import admin_token, bearer, merchant_token
from tools.openapi.operations import routes_of

ROUTES = {route.id: route for route in routes_of(api_routes())}
BETWEEN_CALLS = timedelta(seconds=7)
Headers = dict[str, str]


@dataclass
class StoryCall:
    """One that was answered well: the operation's id, what was asked and answered, and the id of the request."""

    id: str
    asked: str
    answer: httpx.Response
    request_id: str


@dataclass
class Storyteller:
    """What was recorded so far. `call` and `refused` take an operation's id and what fills the braces of its path; the
    story's one business fills the first by itself."""

    services: Services
    clock: ManualClock
    fakes: Any
    client: httpx.AsyncClient
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)
    calls: list[StoryCall] = field(default_factory=list)
    admin: Headers = field(default_factory=lambda: bearer(admin_token()))
    owner: Headers = field(default_factory=lambda: bearer(merchant_token("owner-1")))
    # Of the business, once it has them: its id, a key of each environment, the endpoint of its sandbox events.
    business: str = ""
    server: Headers = field(default_factory=dict)
    live: Headers = field(default_factory=dict)
    endpoint: str = ""

    async def call(self, id: str, *place: str, status: int | None = None, **request: Any) -> Any:
        """The `data` of the answer, kept as the example of the operation `id`; a second call keeps the first one's."""
        status = status or ROUTES[id].operation.status
        answer = await self._ask(id, *place, **request)
        assert answer.status_code == status, f"{id}: {answer.status_code} {answer.text}"
        self.calls.append(StoryCall(id, f"{answer.url} {request}", answer, answer.headers["x-request-id"]))
        kept = self.operations.setdefault(id, {})
        kept.setdefault(str(status), _shown(answer))
        if request.get("json") is not None:
            kept.setdefault("request", request["json"])
        elif id.startswith("receive"):
            kept.setdefault("request", json.loads(request["content"]))
        return answer.json().get("data") if answer.headers["content-type"] == "application/json" else None

    async def refused(self, code: str, id: str, *place: str, **request: Any) -> None:
        """`id` may also be a method and a path that no operation has."""
        answer = await self._ask(id, *place, **request)
        assert answer.json()["error"]["code"] == code, f"{code}: {answer.text}"
        self.errors.setdefault(code, answer.json())

    async def passes(self, **time: float) -> None:
        """Time goes by, and the worker does what is due."""
        self.clock.move(timedelta(**time))
        await sweep_expired(self.services.settlement)
        await self.services.dispatcher.run_once()

    async def _ask(self, id: str, *place: str, **request: Any) -> httpx.Response:
        """By whom the path is for, unless headers say otherwise."""
        method, path = id.split() if " " in id else (ROUTES[id].method.upper(), ROUTES[id].path)
        for filled in place if path.count("{") == len(place) else (self.business, *place):
            head, _, tail = path.partition("{")
            path = head + filled + tail.partition("}")[2]
        own = {"admin": self.admin, "merchant": self.owner, "payments": self.server, "events": self.server}
        self.clock.move(BETWEEN_CALLS)
        headers: Mapping[str, str] | None = request.pop("headers", own.get(path.split("/")[1]))
        return await self.client.request(method, path, headers=headers, **request)


def _shown(answer: httpx.Response) -> Any:
    kind = answer.headers["content-type"].partition(";")[0]
    return answer.json() if kind == "application/json" else answer.text if kind == "text/csv" else None
