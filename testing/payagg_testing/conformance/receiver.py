"""Whether a merchant's webhook handler is fit: it is sent what ours may send, and what others might.

Genuine events must be taken with 2xx, however often and in whichever order they come; anything else must be refused
with 4xx. With a way to count what was handled, once and only once is checked too.
"""

import json
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from payagg.domain.signing import secret_key, signature

ANSWER_SECONDS = 15.0  # as long as a try may take
SETTLE_SECONDS = 5.0  # for a handler that works after it has answered
TOGETHER = 6
TOLERANCE = 300  # seconds that a timestamp may be off
AMOUNT = 150_000


@dataclass(frozen=True)
class ReceiverFinding:
    """One case; `fault` says what the handler did wrong, None when it did well."""

    case: str
    fault: str | None = None

    def __str__(self) -> str:
        return f"{'BROKEN' if self.fault else 'ok':7} {self.case}{f': {self.fault}' if self.fault else ''}"


@dataclass(frozen=True)
class SentEvent:
    """An event as it goes out."""

    id: str
    body: bytes

    @classmethod
    def of(
        cls, kind: str = "payment.success", *, sequence: int = 1, age: timedelta = timedelta(0), **data: Any
    ) -> "SentEvent":
        id, at = f"evt_{secrets.token_hex(16)}", datetime.now(UTC) - age
        reference = "PAY-20250131-" + secrets.token_hex(3).upper()
        payment = {
            "reference": reference,
            "amount": AMOUNT,
            "currency": "NGN",
            "status": kind.partition(".")[2].upper(),
        }
        body = {"id": id, "type": kind, "createdAt": at.isoformat(), "environment": "SANDBOX", "sequence": sequence}
        return cls(id, json.dumps({**body, "data": {**payment, **data}}, ensure_ascii=False).encode())


class EventSender:
    """Sends events to one handler, signed or forged."""

    def __init__(self, url: str, secret: str, count: Callable[[], int] | None, settle_seconds: float) -> None:
        self.url, self.key, self.count = url, secret_key(secret), count
        self.settle_seconds = settle_seconds
        self.stranger = secrets.token_bytes(32)
        # A connection for each request: a handler that breaks may close the one that it broke on.
        alone = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.Client(timeout=ANSWER_SECONDS, trust_env=False, limits=alone)

    def headers(self, event: SentEvent, *, at: int | None = None, keys: list[bytes] | None = None) -> dict[str, str]:
        at = int(time.time()) if at is None else at
        value = signature(keys or [self.key], event.id, at, event.body)
        named = {"webhook-id": event.id, "webhook-timestamp": str(at), "content-type": "application/json"}
        return named | {"webhook-signature": value, "X-Service-Signature": value}

    def send(self, event: SentEvent, headers: Mapping[str, str] | None = None, body: bytes | None = None) -> int:
        """The status; raises httpx.ConnectError when nobody listens. 0: no answer in time."""
        sent = event.body if body is None else body
        try:
            return self.client.post(self.url, content=sent, headers=dict(headers or self.headers(event))).status_code
        except (httpx.TimeoutException, httpx.ReadError, httpx.RemoteProtocolError):
            return 0

    def check_count(self, before: int | None, more: int) -> str | None:
        """A fault unless exactly so many more were handled."""
        if self.count is None or before is None:
            return None
        until = time.monotonic() + self.settle_seconds
        while (found := self.count() - before) != more and time.monotonic() < until and found < more:
            time.sleep(0.05)
        return None if found == more else f"{found} events were handled, not {more}"


ReceiverCase = Callable[[EventSender], str | None]


def genuine(*events: SentEvent, again: int = 1, handled: int | None = None) -> ReceiverCase:
    """Each is sent so often, and must be taken every time; `handled` are to be counted, each once by default."""

    def case(sender: EventSender) -> str | None:
        before = sender.count() if sender.count else None
        for event in [event for event in events for _ in range(again)]:
            status = sender.send(event)
            if not 200 <= status < 300:
                return f"a genuine event was answered with {status or 'nothing in 15 seconds'}"
        return sender.check_count(before, len(events) if handled is None else handled)

    return case


def signed_by(*which: str, new: bytes | None = None) -> ReceiverCase:
    """Several signatures in one header, as while a secret is rotated: one that fits is enough."""

    def case(sender: EventSender) -> str | None:
        event = SentEvent.of()
        keys = {"own": sender.key, "other": sender.stranger, "new": new or sender.key}
        status = sender.send(event, sender.headers(event, keys=[keys[each] for each in which]))
        return None if 200 <= status < 300 else f"it was answered with {status}"

    return case


def forged_case(change: Callable[[EventSender, SentEvent], tuple[Mapping[str, str], bytes]]) -> ReceiverCase:
    """What is not ours must be refused with 4xx, and not be handled."""

    def case(sender: EventSender) -> str | None:
        event = SentEvent.of()
        before = sender.count() if sender.count else None
        headers, body = change(sender, event)
        status = sender.send(event, headers, body)
        if 400 <= status < 500:
            return sender.check_count(before, 0)
        return f"it was answered with {status or 'nothing in 15 seconds'}" + (
            ", as if it were ours" if 200 <= status < 300 else ""
        )

    return case


def together(sender: EventSender) -> str | None:
    event, before = SentEvent.of(), sender.count() if sender.count else None
    with ThreadPoolExecutor(TOGETHER) as pool:
        statuses = list(pool.map(lambda _: sender.send(event), range(TOGETHER)))
    refused = [status for status in statuses if not 200 <= status < 300]
    return f"some were answered with {refused[0]}" if refused else sender.check_count(before, 1)


def _without(*names: str) -> ReceiverCase:
    def change(sender: EventSender, event: SentEvent) -> tuple[Mapping[str, str], bytes]:
        headers = sender.headers(event)
        return {name: value for name, value in headers.items() if name.lower() not in names}, event.body

    return forged_case(change)


def _signature(made: Callable[[str], str]) -> ReceiverCase:
    def change(sender: EventSender, event: SentEvent) -> tuple[Mapping[str, str], bytes]:
        headers = sender.headers(event)
        value = made(headers["webhook-signature"])
        return headers | {"webhook-signature": value, "X-Service-Signature": value}, event.body

    return forged_case(change)


def _aged_case(seconds: int) -> ReceiverCase:
    return forged_case(lambda sender, event: (sender.headers(event, at=int(time.time()) + seconds), event.body))


def _header(name: str, value: str) -> ReceiverCase:
    return forged_case(lambda sender, event: (sender.headers(event) | {name: value}, event.body))


def _body(made: Callable[[bytes], bytes]) -> ReceiverCase:
    return forged_case(lambda sender, event: (sender.headers(event), made(event.body)))


def cases(new_secret: str | None = None) -> Iterator[tuple[str, ReceiverCase]]:
    yield "an event", genuine(SentEvent.of())
    yield "a name with accents and signs", genuine(SentEvent.of(customerName="Adébáyọ̀ ₦"))
    yield "the same event three times", genuine(SentEvent.of(), again=3)
    yield "the same event several times at once", together
    late, early = SentEvent.of("payment.success", sequence=2), SentEvent.of("payment.pending", sequence=1)
    yield "a later event before an earlier one", genuine(late, early)
    yield "an event that comes three days late", genuine(SentEvent.of(age=timedelta(days=3)))
    yield "a type that it does not know", genuine(SentEvent.of("payment.invented"), handled=None)
    yield "a field that it does not know", genuine(SentEvent.of(invented={"deep": [1, None]}))
    yield "a body of 40 KB", genuine(SentEvent.of(metadata={"note": "x" * 40_000}))
    yield "two signatures, its own first", signed_by("own", "other")
    yield "two signatures, its own second", signed_by("other", "own")
    if new_secret is not None:
        yield "the new secret beside the old one", signed_by("new", "own", new=secret_key(new_secret))
        yield "the new secret alone", signed_by("new", new=secret_key(new_secret))
    slow = TOLERANCE - 60
    yield "a timestamp four minutes old", _tolerance_case(-slow)
    yield "a timestamp an hour old", _aged_case(-3600)
    yield "a timestamp an hour ahead", _aged_case(3600)
    yield "a timestamp that is no number", _header("webhook-timestamp", "yesterday")
    yield "another event's id", _header("webhook-id", "evt_" + "0" * 32)
    yield "no signature", _without("webhook-signature", "x-service-signature")
    yield "no timestamp", _without("webhook-timestamp")
    yield "no id", _without("webhook-id")
    yield "an empty signature", _signature(lambda value: "")
    yield "a stranger's signature", forged_case(lambda s, event: (s.headers(event, keys=[s.stranger]), event.body))
    yield "half a signature", _signature(lambda value: value[:20])
    yield "a signature of another version", _signature(lambda value: value.replace("v1,", "v2,"))
    yield "a signature of zeros", _signature(lambda value: "v1," + b64encode(bytes(32)).decode())
    yield "a changed amount", _body(lambda body: body.replace(b"150000", b"950000"))
    yield "the same JSON in other bytes", _body(lambda body: json.dumps(json.loads(body), indent=1).encode())
    yield "no body", _body(lambda body: b"")


def _tolerance_case(seconds: int) -> ReceiverCase:
    def case(sender: EventSender) -> str | None:
        event = SentEvent.of()
        status = sender.send(event, sender.headers(event, at=int(time.time()) + seconds))
        return None if 200 <= status < 300 else f"it was answered with {status}"

    return case


def check_receiver(
    url: str,
    secret: str,
    *,
    new_secret: str | None = None,
    count_url: str | None = None,
    count: Callable[[], int] | None = None,
    settle_seconds: float = SETTLE_SECONDS,
) -> list[ReceiverFinding]:
    """Every case with what came of it. `count_url` (answering GET with a number) or `count` tell how many events were
    handled, `settle_seconds` after the last answer at most. Raises ValueError for a secret that is none,
    httpx.TransportError when nobody listens."""
    sender = EventSender(url, secret, count, settle_seconds)
    if count_url is not None:
        sender.count = lambda: int(sender.client.get(count_url).text)
    with sender.client:
        return [ReceiverFinding(name, case(sender)) for name, case in cases(new_secret)]
