"""The console's cookies: sealed, for this host alone, each opened only under its own name."""

import base64
import ipaddress
import json
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from litestar.datastructures import Cookie

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server.routing import AnyRequest, services

COOKIE_MAX = 3800  # browsers keep 4096 bytes of a cookie, its name and attributes among them
TWO_COOKIES = "The browser sent two cookies of one name. Delete the cookies of this site, and sign in again."


def seal_cookie(
    use_cases: Services,
    name: str,
    content: Mapping[str, Any],
    seconds: int,
    same_site: Literal["strict", "lax"] = "strict",
) -> Cookie:
    """Raises VALIDATION_ERROR on `token` for one that no browser would keep."""
    value = base64.urlsafe_b64encode(use_cases.vault.seal(json.dumps(content).encode(), _context(name))).decode()
    if len(value) > COOKIE_MAX:
        raise Refusal(ErrorCode.VALIDATION_ERROR, "The token is too long for a browser's cookie.", "token")
    return _cookie(use_cases, name, value, seconds, same_site)


def forgotten(use_cases: Services, name: str) -> Cookie:
    """The cookie that makes the browser delete it."""
    return _cookie(use_cases, name, "", 0, "strict")


def open_cookie(request: AnyRequest, name: str) -> dict[str, Any] | None:
    """The content of the browser's cookie, None without one or when it is not ours. Raises VALIDATION_ERROR for two."""
    use_cases = services(request)
    try:
        value = base64.urlsafe_b64decode(_cookie_value(request, _with_prefix(use_cases, name)))
        content = json.loads(use_cases.vault.open(value, _context(name)))
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def are_secure(use_cases: Services) -> bool:
    """Everywhere except on this machine without TLS."""
    parts = urlsplit(use_cases.settings.base_url)
    if parts.scheme == "https":
        return True
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _cookie_value(request: AnyRequest, name: str) -> bytes:
    """The browser's value under this name, empty without one. Ours is base64, quoted when padded, so nothing is
    unquoted: the standard library's unquoting, which `request.cookies` uses, is quadratic in older Pythons
    (CVE-2024-7592). Of two, somebody else set one, at another path or for a parent domain."""
    pairs = [pair for field, value in request.scope["headers"] if field == b"cookie" for pair in value.split(b";")]
    found = [value for key, _, value in (pair.partition(b"=") for pair in pairs) if key.strip() == name.encode()]
    if len(found) > 1:
        raise Refusal(ErrorCode.VALIDATION_ERROR, TWO_COOKIES, "Cookie")
    return found[0].strip(b' \t"') if found else b""


def _cookie(use_cases: Services, name: str, value: str, seconds: int, same_site: Literal["strict", "lax"]) -> Cookie:
    return Cookie(
        key=_with_prefix(use_cases, name),
        value=value,
        path="/",
        max_age=seconds,
        httponly=True,
        samesite=same_site,
        secure=are_secure(use_cases),
    )


def _with_prefix(use_cases: Services, name: str) -> str:
    """With the `__Host-` prefix: neither a page without TLS nor another host of the domain can set it (RFC 6265bis,
    4.1.3)."""
    return f"__Host-{name}" if are_secure(use_cases) else name


def _context(name: str) -> str:
    """Bound to the cookie's name: a sealed value opens under that name alone."""
    return f"console:{name}"
