"""Refuses requests under another host's name. Otherwise the page of another site could point its name at this machine
(DNS rebinding) and read our responses, because the browser takes both for one origin."""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.server.wire import error_envelope, fields_of

# A name or an address, and a port, which forwarding may have changed.
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+?)\.?)(?::[0-9]{1,5})?")


class OwnHosts:
    """An ASGI application that is reached under `names` and under this machine's own loopback names alone."""

    def __init__(self, app: Callable[..., Awaitable[None]], names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or self._is_ours(fields_of(scope["headers"]).get(b"host", b"")):
            await self._app(scope, receive, send)
            return
        words = "This server answers to its own host names alone: loopback, and that of PAYAGG_BASE_URL."
        refused: Any = error_envelope(400, ErrorCode.VALIDATION_ERROR.name, words, "Host")
        await refused.to_asgi_response()(scope, receive, send)

    def _is_ours(self, host: bytes) -> bool:
        found = _HOST.fullmatch(host.decode("latin-1").lower())
        if found is None:
            return False
        name = found["name"] or found["v6"]
        return name in self._names or name == "localhost" or name.endswith(".localhost") or _is_loopback(name)


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
