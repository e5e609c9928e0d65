"""The examples of the description: one story in which everybody calls the product, and what each was answered.

It runs on the in-memory store with a clock and a chance of its own, so it comes to the same bytes each time, and asks
through the whole application. `python -m payagg.entrypoints.cli.docs` writes what it gives to
`payagg/entrypoints/http/api/openapi/examples.json`.
"""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import httpx
from payagg_testing.clocks import ManualClock, SeededEntropy
from structlog.testing import capture_logs

from payagg.adapters.memory import MemoryStore
from payagg.adapters.providers.registry import providers_of
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import WebhookMode
from payagg.entrypoints.http.api.openapi.operations import routes_of
from payagg.entrypoints.http.app import api_routes, create_app
from tests.support.answers.story_admin import administer
from tests.support.answers.story_merchant import BETWEEN_CALLS, manage, reconcile
from tests.support.answers.story_payments import pay
from tests.support.assembly import services_over
from tests.support.http_world import admin_token, bearer, merchant_token
from tests.support.provider_rigs import fakes_running

ROUTES = {route.id: route for route in routes_of(api_routes())}
SECRETS = (
    (re.compile(r"(ssk_(?:sand|live)_)[0-9a-f]{44}"), r"\g<1>" + "0" * 44),
    (re.compile(r"(whsec_)[A-Za-z0-9+/]{40}"), r"\g<1>" + "A" * 40),
)


@dataclass
class Storyteller:
    """What was recorded so far; `call` and `refused` are how everybody in the story speaks."""

    services: Services
    clock: ManualClock
    fakes: Any
    client: httpx.AsyncClient
    sent: list[tuple[Mapping[str, str], bytes]]
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=lambda: bearer(admin_token()))
    owner: dict[str, str] = field(default_factory=lambda: bearer(merchant_token("owner-1")))
    server: dict[str, str] = field(default_factory=dict)  # once it has a SANDBOX key

    async def call(self, id: str, path: str, status: int | None = None, **request: Any) -> Any:
        """The `data` of the answer, kept as the example of the operation `id`; a second call keeps the first one's."""
        status = status or ROUTES[id].operation.status
        answer = await self._ask(ROUTES[id].method.upper(), path, **request)
        assert answer.status_code == status, f"{id}: {answer.status_code} {answer.text}"
        kept = self.operations.setdefault(id, {})
        kept.setdefault(str(status), self._shown(answer))
        if request.get("json") is not None:
            kept.setdefault("request", request["json"])
        elif id.startswith("receive"):
            kept.setdefault("request", json.loads(request["content"]))
        return answer.json().get("data") if answer.headers["content-type"] == "application/json" else None

    async def refused(self, code: str, method: str, path: str, **request: Any) -> None:
        answer = await self._ask(method, path, **request)
        assert answer.json()["error"]["code"] == code, f"{code}: {answer.text}"
        self.errors.setdefault(code, answer.json())

    async def passes(self, **time: float) -> None:
        """Time goes by, and the worker does what is due."""
        self.clock.move(timedelta(**time))
        await self.services.settlement.expire_due()
        await self.services.dispatcher.run_once()

    async def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """By whom the path is for, unless headers say otherwise."""
        own = {"admin": self.admin, "merchant": self.owner, "payments": self.server, "events": self.server}
        self.clock.move(BETWEEN_CALLS)
        headers = request.pop("headers", own.get(path.split("/")[1]))
        return await self.client.request(method, path, headers=headers, **request)

    @staticmethod
    def _shown(answer: httpx.Response) -> Any:
        match answer.headers["content-type"].partition(";")[0]:
            case "application/json":
                return answer.json()
            case "text/csv":
                return answer.text
        return None


@dataclass
class StoryMerchant:
    """A merchant's server that takes every event at once."""

    received: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> DeliveryAttemptResult:
        self.received.append((headers, body))
        return DeliveryAttemptResult(200, None, 42)


async def tell() -> dict[str, Any]:
    """`operations`, `errors` and `events`, as payagg.entrypoints.http.api.openapi.examples reads them."""
    clock, merchant = ManualClock(), StoryMerchant()
    with capture_logs():
        async with fakes_running() as fakes:
            for book in (fakes.paystack.book, fakes.payaza.book):
                book.webhooks, book.now = WebhookMode.HELD, clock.now
            services = services_over(
                MemoryStore(),
                clock=clock,
                entropy=SeededEntropy(7),
                providers=providers_of(allow_loopback=True),
                sender=merchant,
            )
            transport = httpx.ASGITransport(cast(Any, create_app(services)))
            async with httpx.AsyncClient(transport=transport, base_url="http://test/api/v1") as client:
                told = Storyteller(services, clock, fakes, client, merchant.received)
                business = await administer(told)
                shop = await manage(told, business)
                await pay(told, shop)
                await reconcile(told, shop)
    for _, body in merchant.received:
        event = json.loads(body)
        told.events.setdefault(event["type"], event)
    found = {"operations": told.operations, "errors": told.errors, "events": told.events}
    ours = {fakes.paystack.base_url: "https://pay.provider.example", sys.version: "3.11.7 (main) [GCC 12.2.0]"}
    return dict(_scrubbed(found, ours))


def _scrubbed(found: Any, ours: Mapping[str, str]) -> Any:
    """Without ports and programs of this machine, and with secrets that are none."""
    text = json.dumps(found, ensure_ascii=False, sort_keys=True)
    for own, shown in ours.items():
        text = text.replace(own, shown)
    for pattern, words in SECRETS:
        text = pattern.sub(words, text)
    return json.loads(text)


def examples() -> str:
    """The file, as it is committed."""
    return json.dumps(asyncio.run(tell()), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
