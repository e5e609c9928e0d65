"""Webhook handlers as merchants write them: a good one, and others with one thing wrong each."""

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

    def __init__(self) -> None:
        self.secrets = [SECRET, NEW_SECRET]
        self.seen: set[str] = set()
        self.handled = 0
        self.lock = threading.Lock()

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        if not self.is_ours(headers, body):
            return 400
        event = json.loads(body)
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


class TrustsAnybody(GoodReceiver):
    """It never looks at the signature."""

    def is_ours(self, headers: dict[str, str], body: bytes) -> bool:
        return body.startswith(b"{")


class TrustsTheUnsigned(GoodReceiver):
    """It verifies the signature when there is one."""

    def is_ours(self, headers: dict[str, str], body: bytes) -> bool:
        return "webhook-signature" not in headers or super().is_ours(headers, body)


class ReadsTheFirstSignature(GoodReceiver):
    """It does not know that there may be two, and so fails while a secret is rotated."""

    def given(self, headers: dict[str, str]) -> list[str]:
        return super().given(headers)[:1]


class KnowsOneSecret(GoodReceiver):
    """It was not told the new secret."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets = [SECRET]


class ForgetsTheTime(GoodReceiver):
    """It takes a recorded event an hour later."""

    def is_fresh(self, timestamp: str) -> bool:
        return timestamp.isdigit()


class IsInAHurry(GoodReceiver):
    """It refuses what took longer than a minute."""

    def is_fresh(self, timestamp: str) -> bool:
        return timestamp.isdigit() and abs(time.time() - int(timestamp)) <= 60


class FearsNothingAhead(GoodReceiver):
    """It forgets that a timestamp may be ahead."""

    def is_fresh(self, timestamp: str) -> bool:
        return timestamp.isdigit() and time.time() - int(timestamp) <= 300


class BreaksOnBadTime(GoodReceiver):
    """A timestamp that is no number is an error of the server."""

    def is_fresh(self, timestamp: str) -> bool:
        return abs(time.time() - int(timestamp)) <= 300


class ParsesFirst(GoodReceiver):
    """It signs what it parsed, written again."""

    def content(self, id: str, timestamp: str, body: bytes) -> bytes:
        text = json.dumps(json.loads(body), ensure_ascii=False) if body else ""
        return super().content(id, timestamp, text.encode())


class EscapesAccents(GoodReceiver):
    """It writes the body again with escapes, so that names with accents fail."""

    def content(self, id: str, timestamp: str, body: bytes) -> bytes:
        return super().content(id, timestamp, body.decode("ascii", "backslashreplace").encode())


class LeavesTheIdOut(GoodReceiver):
    """The id is not part of what it verifies."""

    def is_ours(self, headers: dict[str, str], body: bytes) -> bool:
        own = json.loads(body)["id"] if body else ""
        return super().is_ours({**headers, "webhook-id": own}, body)


class ComparesTheStart(GoodReceiver):
    """It compares with startswith."""

    def fits(self, expected: str, given: str) -> bool:
        return bool(given) and expected.startswith(given)


class IgnoresTheVersion(GoodReceiver):
    """It looks only behind the comma."""

    def fits(self, expected: str, given: str) -> bool:
        return super().fits(expected.partition(",")[2], given.partition(",")[2])


class KeysWithTheText(GoodReceiver):
    """Its key is the text of the secret."""

    def digest(self, secret: str, signed: bytes) -> str:
        return "v1," + b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()


class HandlesTwice(GoodReceiver):
    """A repeat is handled again."""

    def is_new(self, event: Any) -> bool:
        return True


class RefusesRepeats(GoodReceiver):
    """A repeat is answered with 409, and so is sent again and again."""

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        known = body.startswith(b"{") and json.loads(body)["id"] in self.seen
        return 409 if known else super().receive(headers, body)


class LooksBeforeItLeaps(GoodReceiver):
    """Between looking whether an event is new and keeping it, another may come."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = Counter[str]()
        self.looked = threading.Condition()

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        if not self.is_ours(headers, body):
            return 400
        event = json.loads(body)
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

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        if not self.is_ours(headers, body):
            return 400
        sequence = json.loads(body)["sequence"]
        if sequence < self.last:
            return 422
        self.last = sequence
        return super().receive(headers, body)


class WantsNews(GoodReceiver):
    """An event that was made a day ago is refused, though it was only delivered late."""

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        is_old = body.startswith(b"{") and json.loads(body)["createdAt"][:10] < today
        return 400 if is_old else super().receive(headers, body)


class KnowsItsTypes(GoodReceiver):
    """A type that it does not know is an error."""

    def handle(self, event: Any) -> None:
        if event["type"] not in ("payment.success", "payment.failed", "payment.pending", "payment.reversed"):
            raise ValueError(event["type"])
        super().handle(event)


class ReadsAPage(GoodReceiver):
    """It reads 16 KB of a body at most."""

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        return super().receive(headers, body[:16_384])


class HandlesBeforeItVerifies(GoodReceiver):
    """It answers rightly, but had already handled the event."""

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        if body.startswith(b"{"):
            event = json.loads(body)
            with self.lock:
                if self.is_new(event):
                    self.handle(event)
        return 204 if self.is_ours(headers, body) else 400


BROKEN_RECEIVERS = GoodReceiver.__subclasses__()


@contextmanager
def receiving(receiver: GoodReceiver) -> Iterator[str]:
    """Its address; GET on it tells how many events were handled."""

    class ReceiverHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                status = receiver.receive(headers, body)
            except Exception:  # noqa: BLE001 - as a framework does
                status = 500
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            told = str(receiver.handled).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ReceiverHandler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hooks"
    finally:
        server.shutdown()
        server.server_close()
