"""The examples of the description: one story in which everybody calls the product, and what each was answered.

It runs on the in-memory store with a clock and a chance of its own, so it comes to the same bytes each time, and asks
through the whole application. `python -m tools.documents` writes what it gives to
`tools/openapi/examples.json`.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
from payagg_testing.clocks import ManualClock, SeededEntropy
from payagg_testing.memory import MemoryStore
from structlog.testing import capture_logs

from payagg.adapters.providers.registry import providers_of
from payagg.application.ports.webhooks import DeliveryAttemptResult
from payagg.entrypoints.dev.fake_providers import WebhookMode
from payagg.entrypoints.http.app import create_app
from tests.support.answers.recorder import recorded
from tests.support.answers.story_dashboard import administer, manage, reconcile
from tests.support.answers.story_payments import pay
from tests.support.answers.storyteller import Storyteller
from tests.support.assembly import services_over
from tests.support.provider_rigs import fakes_running

SECRETS = (
    (re.compile(r"(ssk_(?:sand|live)_)[0-9a-f]{44}"), r"\g<1>" + "0" * 44),
    (re.compile(r"(whsec_)[A-Za-z0-9+/]{40}"), r"\g<1>" + "A" * 40),
)


@dataclass
class StoryMerchant:
    """A merchant's server that takes every event at once."""

    events: dict[str, Any] = field(default_factory=dict)  # the first of each type

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, **_: object) -> DeliveryAttemptResult:
        event = json.loads(body)
        self.events.setdefault(event["type"], event)
        return DeliveryAttemptResult(200, None, 42)


@asynccontextmanager
async def a_story() -> AsyncIterator[tuple[Storyteller, StoryMerchant]]:
    """Told to its end, by whom and to whom."""
    clock, merchant, providers = ManualClock(), StoryMerchant(), providers_of(allow_loopback=True)
    with capture_logs():
        async with fakes_running() as fakes:
            for book in (fakes.paystack.book, fakes.payaza.book):
                book.webhooks, book.now = WebhookMode.HELD, clock.now
            services = services_over(
                MemoryStore(), clock=clock, entropy=SeededEntropy(7), providers=providers, sender=merchant
            )
            transport = httpx.ASGITransport(cast(Any, recorded(cast(Any, create_app(services)))))
            async with httpx.AsyncClient(transport=transport, base_url="http://test/api/v1") as client:
                told = Storyteller(services, clock, fakes, client)
                for part in (administer, manage, pay, reconcile):
                    await part(told)
                yield told, merchant


async def tell() -> dict[str, Any]:
    """`operations`, `errors` and `events`, as tools.openapi.examples reads them."""
    async with a_story() as (told, merchant):
        found = {"operations": told.operations, "errors": told.errors, "events": merchant.events}
        provider = told.fakes.paystack.base_url
    ours = {provider: "https://pay.provider.example", sys.version: "3.11.7 (main) [GCC 12.2.0]"}
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
