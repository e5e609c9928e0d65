"""Which origins' scripts may read our answers (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol).

Only origins that a setting names, compared whole; every other request gets our own origin, whatever it says of itself.
No credentials: tokens and keys are sent as headers, and the console's cookie stays on our own site.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from payagg.entrypoints.http.server.wire import FIELDS

Headers = list[tuple[bytes, bytes]]
_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key, x-request-id"),
    (b"access-control-max-age", b"600"),
]
_READABLE = (
    b"access-control-expose-headers",
    b"idempotency-mismatch, idempotency-replayed, link, ratelimit, ratelimit-policy, retry-after, webhook-url-warning,"
    b" x-request-id",
)


class Origins:
    """The origin of `base_url`, our own, and the others that may read answers."""

    def __init__(self, base_url: str, others: Iterable[str]) -> None:
        own = "/".join(base_url.split("/", 3)[:3])
        self._own: Headers = [(b"access-control-allow-origin", own.encode())]
        self._others: Mapping[bytes, Headers] = {
            origin.encode(): [(b"access-control-allow-origin", origin.encode()), _READABLE] for origin in others
        }
        if self._others:
            vary = (b"vary", b"Origin")  # a cache must not give one origin's answer to another
            self._own.append(vary)
            for headers in self._others.values():
                headers.append(vary)

    def headers(self, scope: MutableMapping[str, Any]) -> Headers:
        """What an answer to this request says of who may read it."""
        return self._others.get(scope[FIELDS].get(b"origin"), self._own) if self._others else self._own

    def preflight(self, scope: MutableMapping[str, Any]) -> Headers | None:
        """The answer's headers for a browser that asks whether a named origin may send a request; None for any other
        request."""
        fields = scope[FIELDS]
        asks = b"access-control-request-method" in fields
        return _PREFLIGHT if asks and fields.get(b"origin") in self._others else None
