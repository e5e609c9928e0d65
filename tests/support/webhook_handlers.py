"""Webhook handlers as merchants write them: a good one, and others with one thing wrong each: a method or two."""

import hashlib
import hmac
import json
import threading
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_" + b64encode(b"k" * 32).decode()
NEW_SECRET = "whsec_" + b64encode(b"n" * 32).decode()


class GoodReceiver:
    """Verifies the raw body, skips what it has seen, and counts what it handled."""

    secrets = SECRET, NEW_SECRET

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.handled = 0
        self.lock = threading.Lock()

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        return self.take(json.loads(body)) if self.is_ours(headers, body) else 400

    def take(self, event: Any) -> int:
        with self.lock:
            if self.is_new(event):
                self.handle(event)
        return 204

    def is_ours(self, headers: dict[str, str], body: bytes) -> bool:
        id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not self.is_fresh(timestamp):
            return False
        signed = self.content(id, timestamp, body)
        expected = [self.digest(secret, signed) for secret in self.secrets]
        return any(self.fits(one, given) for one in expected for given in self.given(headers))

    def is_fresh(self, timestamp: str) -> bool:
        return timestamp.isdigit() and abs(time.time() - int(timestamp)) <= 300

    def content(self, id: str, timestamp: str, body: bytes) -> bytes:
        return f"{id}.{timestamp}.".encode() + body

    def digest(self, secret: str, signed: bytes) -> str:
        key = b64decode(secret.removeprefix("whsec_"))
        return "v1," + b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()

    def given(self, headers: dict[str, str]) -> list[str]:
        return headers.get("webhook-signature", "").split(" ")

    def fits(self, expected: str, given: str) -> bool:
        return hmac.compare_digest(expected, given)

    def is_new(self, event: Any) -> bool:
        if event["id"] in self.seen:
            return False
        self.seen.add(event["id"])
        return True

    def handle(self, event: Any) -> None:
        self.handled += 1


def digest_by_text(_: GoodReceiver, secret: str, signed: bytes) -> str:
    return "v1," + b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()


def written_again(own: GoodReceiver, id: str, timestamp: str, body: bytes) -> bytes:
    text = json.dumps(json.loads(body), ensure_ascii=False) if body else ""
    return GoodReceiver.content(own, id, timestamp, text.encode())


def without_its_id(own: GoodReceiver, headers: dict[str, str], body: bytes) -> bool:
    return GoodReceiver.is_ours(own, {**headers, "webhook-id": json.loads(body)["id"] if body else ""}, body)


def handles_first(own: GoodReceiver, headers: dict[str, str], body: bytes) -> int:
    if body.startswith(b"{"):
        own.take(json.loads(body))
    return 204 if own.is_ours(headers, body) else 400


def knows_its_types(own: GoodReceiver, event: Any) -> None:
    if event["type"] not in ("payment.success", "payment.failed", "payment.pending", "payment.reversed"):
        raise ValueError(event["type"])
    GoodReceiver.handle(own, event)


def wants_news(own: GoodReceiver, event: Any) -> int:
    """Though what was made a day ago may only be delivered late."""
    is_old = event["createdAt"][:10] < time.strftime("%Y-%m-%d", time.gmtime())
    return 400 if is_old else GoodReceiver.take(own, event)


WRONG: dict[str, dict[str, Any]] = {
    "TrustsAnybody": {"is_ours": lambda own, headers, body: body.startswith(b"{")},
    "TrustsTheUnsigned": {
        "is_ours": lambda own, headers, body: (
            "webhook-signature" not in headers or GoodReceiver.is_ours(own, headers, body)
        )
    },
    # So it fails while a secret is rotated.
    "ReadsTheFirstSignature": {"given": lambda own, headers: GoodReceiver.given(own, headers)[:1]},
    "KnowsOneSecret": {"secrets": (SECRET,)},
    "ForgetsTheTime": {"is_fresh": lambda own, at: at.isdigit()},
    "IsInAHurry": {"is_fresh": lambda own, at: at.isdigit() and abs(time.time() - int(at)) <= 60},
    "FearsNothingAhead": {"is_fresh": lambda own, at: at.isdigit() and time.time() - int(at) <= 300},
    "BreaksOnBadTime": {"is_fresh": lambda own, at: abs(time.time() - int(at)) <= 300},
    "ParsesFirst": {"content": written_again},
    # So names with accents fail.
    "EscapesAccents": {
        "content": lambda own, id, at, body: GoodReceiver.content(
            own, id, at, body.decode("ascii", "backslashreplace").encode()
        )
    },
    "LeavesTheIdOut": {"is_ours": without_its_id},
    "ComparesTheStart": {"fits": lambda own, expected, given: bool(given) and expected.startswith(given)},
    "IgnoresTheVersion": {
        "fits": lambda own, expected, given: GoodReceiver.fits(own, expected.partition(",")[2], given.partition(",")[2])
    },
    "KeysWithTheText": {"digest": digest_by_text},
    "HandlesTwice": {"is_new": lambda own, event: True},
    # So they are sent again and again.
    "RefusesRepeats": {"take": lambda own, event: 409 if event["id"] in own.seen else GoodReceiver.take(own, event)},
    "WantsNews": {"take": wants_news},
    "KnowsItsTypes": {"handle": knows_its_types},
    "ReadsAPage": {"receive": lambda own, headers, body: GoodReceiver.receive(own, headers, body[:16_384])},
    "HandlesBeforeItVerifies": {"receive": handles_first},
}


class LooksBeforeItLeaps(GoodReceiver):
    """Between looking whether an event is new and keeping it, another may come."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = Counter[str]()
        self.looked = threading.Condition()

    def take(self, event: Any) -> int:
        if event["id"] not in self.seen:
            with self.looked:
                self.looks[event["id"]] += 1
                self.looked.notify_all()
                self.looked.wait_for(lambda: self.looks[event["id"]] > 1, timeout=0.5)
            self.seen.add(event["id"])
            with self.lock:
                self.handle(event)
        return 204


class WantsOrder(GoodReceiver):
    """An event that is older than the last one is refused."""

    last = 0

    def take(self, event: Any) -> int:
        if event["sequence"] < self.last:
            return 422
        self.last = event["sequence"]
        return super().take(event)


BROKEN_RECEIVERS: list[type[GoodReceiver]] = [
    *(type(name, (GoodReceiver,), methods) for name, methods in WRONG.items()),
    LooksBeforeItLeaps,
    WantsOrder,
]


@contextmanager
def receiving(receiver: GoodReceiver) -> Iterator[str]:
    """Its address; GET on it tells how many events were handled."""

    class ReceiverHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                self._answer(receiver.receive(headers, body))
            except Exception:  # noqa: BLE001 - as a framework does
                self._answer(500)

        def do_GET(self) -> None:
            self._answer(200, str(receiver.handled).encode())

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), ReceiverHandler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hooks"
        finally:
            server.shutdown()
