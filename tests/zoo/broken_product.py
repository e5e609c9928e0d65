"""The product with one part exchanged for a broken one: a store, a port, a use case, or something put in front of it.

Each is as somebody might write it who replaces that part: the docstring says what is wrong.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from payagg.adapters.memory import MemoryStore
from payagg.adapters.memory.businesses import MemoryApiKeys
from payagg.adapters.memory.payments import MemoryPayments
from payagg.adapters.memory.webhooks import MemoryWebhooks
from payagg.application.ports import TryResult
from payagg.application.repositories import PaymentToSettle
from payagg.application.store import KeyHolder
from payagg.domain.api_key import ApiKey
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.domain.webhook import WebhookEndpoint
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.conformance import InboxSender, InProcess
from payagg.testing.conformance.inbox import Inbox
from payagg.testing.conformance.target import ConformanceTarget

# --- stores ---


class UniqueForAll(MemoryStore):
    """A store whose unique index on idempotency keys forgot the business."""

    machine = "idempotency"

    def _original(self, business_id: str, environment: Environment, key: str | None) -> Payment | None:
        kept = self.state.idempotency_keys.items()
        found = [reference for (_, where, name), reference in kept if (where, name) == (environment, key)]
        return self.state.payments[found[0]] if found else None


@dataclass(frozen=True)
class RowsWithoutIndex(MemoryPayments):
    async def add(self, payment: Payment) -> bool:
        return await super().add(replace(payment, idempotency_key=None)) and self._keep(payment)

    def _keep(self, payment: Payment) -> bool:
        self.state.payments[payment.reference] = payment
        if payment.idempotency_key is not None:
            slot = payment.business_id, payment.environment, payment.idempotency_key
            self.state.idempotency_keys[slot] = payment.reference
        return True


class NotUnique(MemoryStore):
    """A store without a unique index on idempotency keys: two servers at once make two payments."""

    machine = "idempotency"

    def __init__(self) -> None:
        super().__init__()
        self.transaction = replace(self.transaction, payments=RowsWithoutIndex(self.state))


class CachedKeys(MemoryStore):
    """A store with a cache of keys in front, which nobody empties."""

    machine = "api-keys"

    async def find_key(self, secret_hash: bytes) -> KeyHolder | None:
        cache: dict[bytes, KeyHolder] = self.__dict__.setdefault("cache", {})
        found = await super().find_key(secret_hash)
        return cache.setdefault(secret_hash, found) if found is not None else None

    async def _ensure_standing(self, remembered: KeyHolder | None) -> None:
        """Trusts what is remembered."""


@dataclass(frozen=True)
class KeysThatStay(MemoryApiKeys):
    async def save(self, key: ApiKey) -> None:
        """Nothing."""


class NeverRevokes(MemoryStore):
    """A store that loses revocations."""

    machine = "api-keys"

    def __init__(self) -> None:
        super().__init__()
        self.transaction = replace(self.transaction, api_keys=KeysThatStay(self.state))


@dataclass(frozen=True)
class PaymentsBeside(MemoryPayments):
    """Rows of payments that ask `webhooks` who is to be told."""

    webhooks: MemoryWebhooks

    async def lock_to_settle(self, reference: str) -> PaymentToSettle | None:
        found = await super().lock_to_settle(reference)
        if found is None:
            return None
        payment = found.payment
        return replace(found, subscribers=await self.webhooks.subscribers(payment.business_id, payment.environment))


@dataclass(frozen=True)
class EndpointsOfAll(MemoryWebhooks):
    async def subscribers(self, business_id: str, environment: Environment) -> list[WebhookEndpoint]:
        return [one for one in self.state.endpoints.values() if one.is_active and one.environment is environment]

    async def subscribers_of(
        self, owners: Collection[tuple[str, Environment]]
    ) -> dict[tuple[str, Environment], list[WebhookEndpoint]]:
        return {owner: await self.subscribers(*owner) for owner in owners}


class TellsEverybody(MemoryStore):
    """A store whose query for subscribers lacks the business."""

    machine = "webhooks"

    def __init__(self) -> None:
        super().__init__()
        webhooks = EndpointsOfAll(self.state)
        payments = PaymentsBeside(self.state, webhooks)
        self.transaction = replace(self.transaction, webhooks=webhooks, payments=payments)


# --- senders ---


class PrettySender(InboxSender):
    """A sender that writes the body anew after it was signed."""

    machine = "webhooks"

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str = "", is_test: bool = False
    ) -> TryResult:
        pretty = json.dumps(json.loads(body)).encode()
        return await super().send(url, headers, pretty, owner=owner, is_test=is_test)


class ContentSender(InboxSender):
    """A sender for which any answer is a success."""

    machine = "webhooks"

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str = "", is_test: bool = False
    ) -> TryResult:
        await super().send(url, headers, body, owner=owner, is_test=is_test)
        return TryResult(200, None, 1)


class HeaderlessSender(InboxSender):
    """A sender that knows Standard Webhooks and not the header of the interface."""

    machine = "webhooks"

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, *, owner: str = "", is_test: bool = False
    ) -> TryResult:
        left = {name: value for name, value in headers.items() if name != "x-service-signature"}
        return await super().send(url, left, body, owner=owner, is_test=is_test)


# --- settings and ports ---


def long_checkout(services: Services) -> Services:
    """payments: The checkout window is two hours long."""
    return replace(services, payments=replace(services.payments, checkout_ttl=timedelta(hours=2)))


def short_drain(services: Services) -> Services:
    """gateways: The drain window is ten minutes long."""
    return replace(services, gateways=replace(services.gateways, drain_window=timedelta(minutes=10)))


def trusting_provider(services: Services) -> Services:
    """settlement: The provider's adapter takes every signature for genuine."""
    provider: Any = services.provider_events.payment_options.providers["provider_a"]

    class Trusting:
        def is_authentic(self, *_: Any) -> bool:
            return True

        def __getattr__(self, name: str) -> Any:
            return getattr(provider, name)

    providers: Any = services.provider_events.payment_options.providers
    providers["provider_a"] = Trusting()
    return services


# --- in front of the application ---

Reply = tuple[int, dict[str, Any]]
Ask = Callable[..., Awaitable[tuple[int, bytes]]]


class Proxy:
    """Something in front: it sees method, path, headers and body, and may ask the application as often as it likes."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        content = b""
        while True:
            message = await receive()
            content += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}

        async def ask(path: str = scope["path"], body: bytes = content) -> tuple[int, bytes]:
            return await self._asked(scope, path, body)

        status, body = await self.answer(scope["method"], scope["path"], headers, content, ask)
        start = {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    async def _asked(self, scope: Any, path: str, body: bytes) -> tuple[int, bytes]:
        answers: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            answers.append(message)

        kept = [pair for pair in scope["headers"] if pair[0].lower() != b"content-length"]
        headers = [*kept, (b"content-length", str(len(body)).encode())]
        inner = {**scope, "path": path, "raw_path": path.encode(), "headers": headers}
        await self.app(inner, receive, send)
        return answers[0]["status"], b"".join(message.get("body", b"") for message in answers[1:])

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        return await ask()


class TellsDecimals(Proxy):
    """Amounts are told as decimals."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        status, told = await ask()
        parsed = json.loads(told)
        data = parsed.get("data")
        if isinstance(data, dict) and "amount" in data:
            data["amount"] = float(data["amount"])
        return status, json.dumps(parsed).encode()


class ReadsNumbersInText(Proxy):
    """A lenient parser: "5000" is 5000."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        if path.endswith("/payments/initiate"):
            given = json.loads(body)
            if isinstance(given.get("amount"), str):
                return await ask(body=json.dumps({**given, "amount": int(given["amount"])}).encode())
        return await ask()


class IgnoresCase(Proxy):
    """References are read in any letter case."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        head, _, last = path.rpartition("/")
        return await ask(path=f"{head}/{last.upper()}" if last.startswith("pay-") else path)


class TrimsReferences(Proxy):
    """References are trimmed before they are looked at, as by a pattern that ends in $."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        return await ask(path=path.strip())


class TellsInternals(Proxy):
    """A payment's detail is the row, with the processor's reference."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        status, told = await ask()
        parsed = json.loads(told)
        if isinstance(parsed.get("data"), dict) and "reference" in parsed["data"]:
            parsed["data"]["processorReference"] = parsed["data"]["reference"]
        return status, json.dumps(parsed).encode()


class RefusesWithSuccess(Proxy):
    """Refusals are answered with 200, and the error in the body."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        status, told = await ask()
        return 200 if status >= 400 else status, told


class LosesTheEnvelope(Proxy):
    """Refusals have an envelope of their own."""

    machine = "payments"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        status, told = await ask()
        return status, json.dumps({"detail": json.loads(told)["error"]}).encode() if status >= 400 else told


class AsksTwice(Proxy):
    """A proxy sends every POST a second time when the first took too long, as it always finds."""

    machine = "idempotency"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        if method == "POST" and path.endswith("/initiate"):
            await ask()
        return await ask()


class CachesForEverybody(Proxy):
    """A cache in front keeps answers by their path, whoever asks."""

    machine = "businesses"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        cache: dict[str, tuple[int, bytes]] = self.__dict__.setdefault("cache", {})
        if method == "GET" and path.startswith("/api/v1/payments/PAY"):
            if path not in cache:
                status, told = await ask()
                if status != 200:
                    return status, told
                cache[path] = status, told
            return cache[path]
        cache.pop(path.removesuffix("/simulate"), None)
        return await ask()


class ServesListsWithoutTokens(Proxy):
    """A list that was fetched once is served to whoever asks next."""

    machine = "businesses"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        cache: dict[str, tuple[int, bytes]] = self.__dict__.setdefault("cache", {})
        status, told = await ask()
        if method == "GET" and "/merchant/" in path and status == 200:
            cache[path] = status, told
        return cache.get(path, (status, told)) if method == "GET" and status == 401 else (status, told)


class IgnoresUnknownFields(Proxy):
    """What a body should not hold is dropped in silence."""

    machine = "gateways"

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes, ask: Ask) -> tuple[int, bytes]:
        if method == "PATCH" and path.startswith("/api/v1/admin/gateways/") and not path.endswith("credentials"):
            known = ("name", "description", "displayOrder")
            given = {name: value for name, value in json.loads(body).items() if name in known}
            return await ask(body=json.dumps(given).encode())
        return await ask()


@contextmanager
def product_target(part: Any) -> Iterator[ConformanceTarget]:
    """The product on the in-memory store with one part exchanged: a store, a sender, a proxy, or services changed by a
    function."""
    is_class = isinstance(part, type)
    store = part() if is_class and issubclass(part, MemoryStore) else None
    sender: Callable[[Inbox], InboxSender] | None = part if is_class and issubclass(part, InboxSender) else None
    world = InProcess(store or MemoryStore(), sender=sender or InboxSender)
    within = part if is_class and issubclass(part, Proxy) else (lambda app: app)
    if not is_class:
        world.services = part(world.services)
    target = world.target(within)
    yield target
    target.service.close()
    world.close()


PARTS: list[Any] = [
    *(one for one in MemoryStore.__subclasses__() if one.__module__ == __name__),
    *(one for one in InboxSender.__subclasses__() if one.__module__ == __name__),
    *Proxy.__subclasses__(),
    long_checkout,
    short_drain,
    trusting_provider,
]
