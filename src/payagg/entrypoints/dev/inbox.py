"""The webhook viewer of `dev`: a receiver that verifies as a merchant should, and a page that shows each delivery."""

import hmac
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from payagg.domain.signing import secret_key, signature

ASSETS = Path(__file__).with_name("inbox_assets")
TYPES = {"inbox.html": "text/html", "inbox.css": "text/css", "inbox.js": "text/javascript"}
POLICY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
KEPT = 200
TOLERANCE = 300  # seconds; older timestamps may be replays


@dataclass
class WebhookViewer:
    """Deliveries of this run, the newest KEPT of them. `secrets` are the endpoint's signing secrets."""

    now: Callable[[], datetime]
    secrets: list[str] = field(default_factory=list, repr=False)
    received: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    count: int = 0

    def take(self, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        verdict = self._verdict(dict(headers), body)
        self.count += 1
        self.received.append(
            {
                "number": self.count,
                "eventId": dict(headers).get("webhook-id", ""),
                "type": _type_of(body),
                "receivedAt": self.now().isoformat(timespec="milliseconds"),
                "verified": verdict is None,
                "verdict": "Signature verified" if verdict is None else f"Not verified: {verdict}",
                "headers": headers,
                "body": body.decode(errors="replace"),
            }
        )

    def _verdict(self, headers: dict[str, str], body: bytes) -> str | None:
        """Why the delivery is refused, None when it is valid: the check of the Standard Webhooks specification."""
        event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not event_id or not timestamp.isdecimal():
            return "webhook-id or webhook-timestamp is missing."
        if abs(self.now().timestamp() - int(timestamp)) > TOLERANCE:
            return "the timestamp is too far from now."
        sent = headers.get("webhook-signature", "").encode().split()
        for secret in self.secrets:
            expected = signature([secret_key(secret)], event_id, int(timestamp), body).encode()
            if any(hmac.compare_digest(expected, one) for one in sent):
                return None
        return "no signature was made with this endpoint's secret."


def inbox_routes(inbox: WebhookViewer) -> list[HTTPRouteHandler]:
    """The receiver, the page, its files and its call, under /dev/inbox."""

    @post("/dev/inbox", status_code=204)
    async def hook(request: Request[Any, Any, Any]) -> None:
        inbox.take([(name, value) for name, value in request.headers.items()], await request.body())

    @get("/dev/inbox")
    async def page() -> Response[bytes]:
        return _file("inbox.html")

    @get("/dev/inbox/{name:str}")
    async def asset(name: FromPath[str]) -> Response[bytes]:
        return _file(name)

    @get("/dev/inbox/deliveries")
    async def deliveries(request: Request[Any, Any, Any]) -> Response[bytes]:
        after = request.query_params.get("after", "0")
        seen = int(after) if after.isascii() and after.isdecimal() and len(after) < 10 else 0
        return _json({"deliveries": [one for one in inbox.received if one["number"] > seen]})

    return [hook, page, asset, deliveries]


def _file(name: str) -> Response[bytes]:
    kind = TYPES.get(name)
    if kind is None:
        return _json({"message": "No such file."}, 404)
    return Response((ASSETS / name).read_bytes(), media_type=f"{kind}; charset=utf-8", headers=POLICY)


def _json(value: Any, status: int = 200) -> Response[bytes]:
    return Response(json.dumps(value).encode(), status_code=status, media_type="application/json", headers=POLICY)


def _type_of(body: bytes) -> str:
    try:
        return str(json.loads(body)["type"])
    except (ValueError, KeyError, TypeError):
        return "not an event"
