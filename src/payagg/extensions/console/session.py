"""A browser's session, sealed in a cookie for this host alone, and the proof that one of our pages sent a form."""

import base64
import hmac
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from litestar.datastructures import Cookie

from payagg.application.accounts.access import Credential, SignedIn
from payagg.domain.audit import ActorRealm
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server.rate_limits import client_ip
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.extensions.console.console_sessions import Console
from payagg.extensions.console.domain import SESSION_MAX

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


Realm = Literal["merchant", "admin"]
HOME: dict[Realm, str] = {"merchant": "/console", "admin": "/console/admin"}
NAMES = {"merchant": "payagg_console", "admin": "payagg_console_admin"}
VISITOR_SECONDS = 3600  # before sign-in
FORM_TOKEN_BYTES = 16


@dataclass(frozen=True)
class Session:
    """One browser's, until `expires` (Unix seconds). Without a subject it only proves the sign-in form. `form_token`
    stands in every form (https://cheatsheetseries.owasp.org, Cross-Site Request Forgery Prevention). It holds the
    bearer token that signed in, or the claims of whom an issuer signed in."""

    realm: Realm
    expires: int
    form_token: str = field(repr=False)
    subject: str = ""
    token: str = field(default="", repr=False)
    claims: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def is_signed_in(self) -> bool:
        return self.subject != ""

    @property
    def credential(self) -> Credential:
        return self.token if self.claims is None else SignedIn(self.claims)


def visitor(use_cases: Services, realm: Realm) -> Session:
    """A new session before sign-in."""
    return Session(realm, now_of(use_cases) + VISITOR_SECONDS, use_cases.entropy.hex(FORM_TOKEN_BYTES))


def signed_in(use_cases: Services, realm: Realm, token: str) -> Session:
    """A new session that ends with the token, and after twelve hours; raises UNAUTHORIZED or, for a token of the other
    realm, FORBIDDEN. A token valid only by its leeway is refused."""
    claims, now = use_cases.tokens.read(token), now_of(use_cases)
    if claims["exp"] <= now:
        raise Refusal(ErrorCode.UNAUTHORIZED)
    if claims.get("type") != realm:
        raise Refusal(ErrorCode.FORBIDDEN)
    expires = min(claims["exp"], now + int(SESSION_MAX.total_seconds()))
    form_token = use_cases.entropy.hex(FORM_TOKEN_BYTES)
    return Session(realm, expires, form_token, claims["sub"], token=token)


def signed_in_by_issuer(use_cases: Services, realm: Realm, subject: str, **claims: Any) -> Session:
    """A new session of twelve hours. A revocation of the subject's tokens compares its `iat`."""
    now, form_token = now_of(use_cases), use_cases.entropy.hex(FORM_TOKEN_BYTES)
    claims |= {"sub": subject, "type": realm, "iat": now}
    return Session(realm, now + int(SESSION_MAX.total_seconds()), form_token, subject, claims=claims)


async def begin_session(request: AnyRequest, session: Session) -> Cookie:
    """The session on record, and its cookie. Raises VALIDATION_ERROR as `cookie` does, and Unavailable."""
    use_cases = services(request)
    sealed, ends_at = cookie(use_cases, session), datetime.fromtimestamp(session.expires, UTC)
    realm = ActorRealm(session.realm)
    await use_cases.of(Console).sessions.begin(session.form_token, realm, session.subject, _address(request), ends_at)
    return sealed


async def find_session(request: AnyRequest, realm: Realm, *, is_sign_in: bool = False) -> Session | None:
    """The browser's session, or with `is_sign_in` that of its sign-in form; None without one, or when it is
    expired, ended or not ours. Raises VALIDATION_ERROR for two of them."""
    use_cases = services(request)
    try:
        session = Session(**(open_cookie(request, _name(realm, is_sign_in=is_sign_in)) or {}))
    except TypeError:  # no session, or another release's
        return None
    is_right = session.realm == realm and session.is_signed_in is not is_sign_in
    if not is_right or now_of(use_cases) >= session.expires:
        return None
    if is_sign_in or await use_cases.of(Console).sessions.see(session.form_token, _address(request)):
        return session
    return None


def cookie(use_cases: Services, session: Session) -> Cookie:
    """Raises VALIDATION_ERROR on `token` for one that no browser would keep."""
    content = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    name = _name(session.realm, is_sign_in=not session.is_signed_in)
    return seal_cookie(use_cases, name, content, session.expires - now_of(use_cases))


def no_cookie(use_cases: Services, realm: Realm) -> Cookie:
    """The cookie that makes the browser delete its session."""
    return forgotten(use_cases, _name(realm, is_sign_in=False))


def needs_tls(use_cases: Services) -> bool:
    """Whether browsers would drop the cookie: the deployment's address is http, and not on this machine."""
    return are_secure(use_cases) and not use_cases.settings.base_url.startswith("https://")


def ensure_from_our_page(request: AnyRequest, session: Session | None, form_token: str) -> None:
    """Raises FORBIDDEN for a form from another origin, or with another session's token."""
    use_cases = services(request)
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # Our own pages send no referrer, and with it browsers without Sec-Fetch-Site call the origin `null`.
    is_ours = site in (None, "same-origin") and origin in (None, "null", _origin(use_cases))
    if not is_ours or session is None or not hmac.compare_digest(form_token.encode(), session.form_token.encode()):
        raise Refusal(ErrorCode.FORBIDDEN, "This form is out of date. Open the page again and repeat what you did.")


def _address(request: AnyRequest) -> str | None:
    address = client_ip(request)
    return str(address) if address else None


def _name(realm: Realm, *, is_sign_in: bool) -> str:
    """The sign-in form has its own cookie: a link from another site arrives without the session's (SameSite), and must
    not end the session."""
    return f"{NAMES[realm]}_visit" if is_sign_in else NAMES[realm]


def _origin(use_cases: Services) -> str:
    return "/".join(use_cases.settings.base_url.split("/", 3)[:3])


def now_of(use_cases: Services) -> int:
    return int(use_cases.clock.now().timestamp())
