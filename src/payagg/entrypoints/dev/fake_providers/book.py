"""A fake provider's state: its charges, how its payers act, and how a test or `dev` controls it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from itertools import count
from typing import Any

import httpx

OPENED_AT = datetime(2025, 1, 1, 10, tzinfo=UTC)


class WebhookMode(Enum):
    """When the provider's events are delivered. HELD ones wait for `release`."""

    NOW = "NOW"
    HELD = "HELD"
    NEVER = "NEVER"


@dataclass
class FakeCharge:
    """One transaction at the provider. `opened` counts how often it was begun, `paid` how often money moved."""

    reference: str
    amount: int  # kobo
    currency: str
    mode: str  # test or live
    id: int
    status: str
    key: str = field(repr=False)
    email: str = field(default="", repr=False)
    callback_url: str = ""
    cancel_url: str = ""
    reason: str = ""
    fees: int = 0  # kobo put on top of the amount, where the payer bears them
    opened: int = 1
    paid: int = 0
    created_at: datetime = OPENED_AT


@dataclass(frozen=True)
class FakeReturn:
    """A refund or a dispute of a charge; `amount` is kobo."""

    id: int
    charge: FakeCharge
    amount: int
    status: str
    is_dispute: bool
    created_at: datetime
    of_dispute: int | None = None  # the dispute that a refund was made for


@dataclass(frozen=True)
class Outgoing:
    """One event as it goes out; the body is signed as these very bytes."""

    mode: str
    body: bytes
    headers: Mapping[str, str]


@dataclass
class Book:
    """One fake provider's state, which tests hold directly."""

    webhook_urls: dict[str, str] = field(default_factory=dict)  # by mode; a mode without one sends nothing
    webhooks: WebhookMode = WebhookMode.NOW
    faults: deque[Any] = field(default_factory=deque)  # of the harness (payagg_testing), one per API call, in order
    alter: dict[str, Any] = field(default_factory=dict)  # wrong facts: amount (kobo), currency, reference, mode
    charges: dict[str, FakeCharge] = field(default_factory=dict)
    returns: list[FakeReturn] = field(default_factory=list)
    now: Callable[[], datetime] = field(default=partial(datetime.now, UTC))
    calls: list[tuple[str, str]] = field(default_factory=list)  # operation, reference
    answers: list[int] = field(default_factory=list)  # HTTP status of each delivered event; 0 = no answer
    waiting: list[Outgoing] = field(default_factory=list)
    ids: Callable[[], int] = field(default_factory=lambda: count(5_000_000_001).__next__)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def count(self, operation: str, reference: str | None = None) -> int:
        """How many calls of that name came, about `reference` or at all."""
        return sum(1 for name, about in self.calls if name == operation and reference in (None, about))

    def view_of(self, charge: FakeCharge) -> FakeCharge:
        """The charge as the provider reports it, wrong facts included."""
        known = {name: value for name, value in self.alter.items() if name in FakeCharge.__dataclass_fields__}
        return FakeCharge(**{**charge.__dict__, **known})

    def list_charges(self, mode: str, since: str, until: str) -> list[FakeCharge]:
        """The charges of its list, newest first, from and to an instant."""
        first, last = datetime.fromisoformat(since), datetime.fromisoformat(until)
        found = [one for one in self.charges.values() if one.mode == mode and first <= one.created_at < last]
        return sorted(found, key=lambda charge: charge.id, reverse=True)

    def list_returns(self, mode: str, *, is_dispute: bool, since: str, until: str) -> list[FakeReturn]:
        """The refunds or disputes of its list, newest first, from and to an instant."""
        first, last = datetime.fromisoformat(since), datetime.fromisoformat(until)
        own = [one for one in self.returns if one.is_dispute is is_dispute and one.charge.mode == mode]
        return sorted((one for one in own if first <= one.created_at < last), key=lambda one: one.id, reverse=True)

    # --- events ----------------------------------------------------------------------------------------------------

    def emit(self, event: Outgoing) -> None:
        """Sends the event as controlled. Delivery never delays the caller, as at the real provider."""
        if self.webhooks is WebhookMode.NEVER:
            return
        if self.webhooks is WebhookMode.HELD:
            self.waiting.append(event)
            return
        task = asyncio.create_task(self._deliver(event))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def release(self, *, backwards: bool = False, times: int = 1) -> None:
        """Delivers held events one by one, perhaps in the wrong order or several times."""
        waiting, self.waiting = self.waiting, []
        for event in list(reversed(waiting)) if backwards else waiting:
            for _ in range(times):
                await self._deliver(event)

    async def wait_for_deliveries(self) -> None:
        """Returns when no delivery is running."""
        while self.tasks:
            await asyncio.gather(*self.tasks)

    async def _deliver(self, event: Outgoing) -> None:
        url = self.webhook_urls.get(event.mode)
        if not url:
            return
        try:
            # To our own server on loopback: reading the system's certificates first takes 30 ms of CPU.
            async with httpx.AsyncClient(trust_env=False, timeout=30.0, verify=False) as client:  # noqa: S501
                answer = await client.post(url, content=event.body, headers=dict(event.headers))
            self.answers.append(answer.status_code)
        except httpx.HTTPError:
            self.answers.append(0)
