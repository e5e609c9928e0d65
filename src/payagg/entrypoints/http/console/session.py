"""Signed-in browsers: what a session may do, sealed in a cookie, and the proof that a form was sent from a page of
ours."""

import base64
import hmac
import ipaddress
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

from litestar.datastructures import Cookie

from payagg.domain.audit import ActorRealm
from payagg.domain.console_session import SESSION_MAX
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server.rate_limits import client_ip
from payagg.entrypoints.http.server.routing import AnyRequest, services

Realm = Literal["merchant", "admin"]
HOME = {"merchant": "/console", "admin": "/console/admin"}
NAMES = {"merchant": "payagg_console", "admin": "payagg_console_admin"}
COOKIE_MAX = 3800  # browsers keep 4096 bytes of a cookie, its name and attributes among them
VISITOR_SECONDS = 3600  # for who has not signed in yet
FORM_TOKEN_BYTES = 16
TWO_COOKIES = "The browser sent two cookies of one name. Delete the cookies of this site, and sign in again."


@dataclass(frozen=True)
class Session:
    """One browser's, until `expires` (Unix seconds). Without a token it only proves the sign-in form. `form_token`
    stands in every form (https://cheatsheetseries.owasp.org, Cross-Site Request Forgery Prevention)."""

    realm: Realm
    expires: int
    form_token: str = field(repr=False)
    subject: str = ""
    token: str = field(default="", repr=False)

    @property
    def is_signed_in(self) -> bool:
        return self.token != ""


def visitor(use_cases: Services, realm: Realm) -> Session:
    """A new session of somebody who has not signed in."""
    return Session(realm, _now(use_cases) + VISITOR_SECONDS, use_cases.payments.entropy.hex(FORM_TOKEN_BYTES))


def signed_in(use_cases: Services, realm: Realm, token: str) -> Session:
    """A new session that ends with the token, and after twelve hours; raises UNAUTHORIZED or, for a token of the other
    realm, FORBIDDEN. One that is good for its leeway alone would sign nobody in for long."""
    claims, now = use_cases.tokens.read(token), _now(use_cases)
    if claims["exp"] <= now:
        raise Refusal(ErrorCode.UNAUTHORIZED)
    if claims.get("type") != realm:
        raise Refusal(ErrorCode.FORBIDDEN)
    expires = min(claims["exp"], now + int(SESSION_MAX.total_seconds()))
    form_token = use_cases.payments.entropy.hex(FORM_TOKEN_BYTES)
    return Session(realm, expires, form_token, claims["sub"], token)


async def begun(request: AnyRequest, session: Session) -> Cookie:
    """The session on record, and its cookie. Raises VALIDATION_ERROR as `cookie` does, and Unavailable."""
    use_cases = services(request)
    sealed, ends_at = cookie(use_cases, session), datetime.fromtimestamp(session.expires, UTC)
    realm = ActorRealm(session.realm)
    await use_cases.console_sessions.begin(session.form_token, realm, session.subject, _address(request), ends_at)
    return sealed


async def found(request: AnyRequest, realm: Realm, *, visits: bool = False) -> Session | None:
    """The browser's session, or with `visits` that of its sign-in form; None where there is none, it is over, was ended
    anywhere, or is not ours. Raises VALIDATION_ERROR for two of them."""
    use_cases = services(request)
    try:
        sealed = base64.urlsafe_b64decode(_sent(request, _name(use_cases, realm, visits=visits)))
        session = Session(**json.loads(use_cases.vault.open(sealed, _context(realm))))
    except (ValueError, TypeError):
        return None
    is_right = session.realm == realm and session.is_signed_in is not visits
    if not is_right or _now(use_cases) >= session.expires:
        return None
    if visits or await use_cases.console_sessions.see(session.form_token, _address(request)):
        return session
    return None


def cookie(use_cases: Services, session: Session) -> Cookie:
    """Raises VALIDATION_ERROR on `token` for one that no browser would keep."""
    fields = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    sealed = use_cases.vault.seal(json.dumps(fields).encode(), _context(session.realm))
    value = base64.urlsafe_b64encode(sealed).decode()
    if len(value) > COOKIE_MAX:
        raise Refusal(ErrorCode.VALIDATION_ERROR, "The token is too long for a browser's cookie.", "token")
    seconds = session.expires - _now(use_cases)
    return _cookie(use_cases, session.realm, value, seconds, visits=not session.is_signed_in)


def no_cookie(use_cases: Services, realm: Realm) -> Cookie:
    """Which makes the browser forget its session."""
    return _cookie(use_cases, realm, "", 0, visits=False)


def needs_tls(use_cases: Services) -> bool:
    """Whether browsers would throw the cookie away: the deployment's address is http, and not on this machine."""
    return _is_secure(use_cases) and not use_cases.settings.base_url.startswith("https://")


def ensure_from_our_page(request: AnyRequest, session: Session | None, form_token: str) -> None:
    """Raises FORBIDDEN for a form that a page of another origin sent, or that carries another session's token."""
    use_cases = services(request)
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    # Our own pages send no referrer, and with it browsers without Sec-Fetch-Site call the origin `null`.
    is_ours = site in (None, "same-origin") and origin in (None, "null", _origin(use_cases))
    if not is_ours or session is None or not hmac.compare_digest(form_token.encode(), session.form_token.encode()):
        raise Refusal(ErrorCode.FORBIDDEN, "This form is out of date. Open the page again and repeat what you did.")


def _sent(request: AnyRequest, name: str) -> bytes:
    """What the browser sent under this name, empty where it sent nothing. Ours is base64, in quotes where it is padded,
    so nothing is unquoted: the standard library's way takes quadratic time in older Pythons (CVE-2024-7592), and
    `request.cookies` goes it. Of two, one was set by somebody else, at another path or for a domain above ours."""
    pairs = [pair for field, value in request.scope["headers"] if field == b"cookie" for pair in value.split(b";")]
    found = [value for key, _, value in (pair.partition(b"=") for pair in pairs) if key.strip() == name.encode()]
    if len(found) > 1:
        raise Refusal(ErrorCode.VALIDATION_ERROR, TWO_COOKIES, "Cookie")
    return found[0].strip(b' \t"') if found else b""


def _address(request: AnyRequest) -> str | None:
    address = client_ip(request)
    return str(address) if address else None


def _cookie(use_cases: Services, realm: Realm, value: str, seconds: int, *, visits: bool) -> Cookie:
    return Cookie(
        key=_name(use_cases, realm, visits=visits),
        value=value,
        path="/",
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=_is_secure(use_cases),
    )


def _name(use_cases: Services, realm: Realm, *, visits: bool) -> str:
    """With the prefix that lets neither a page without TLS nor another host of the domain set it (RFC 6265bis, 4.1.3).
    The sign-in form has a cookie of its own: a link from another site comes without the session's (SameSite), and must
    not end it."""
    name = f"{NAMES[realm]}_visit" if visits else NAMES[realm]
    return f"__Host-{name}" if _is_secure(use_cases) else name


def _is_secure(use_cases: Services) -> bool:
    """Everywhere but on this machine itself without TLS."""
    parts = urlsplit(use_cases.settings.base_url)
    if parts.scheme == "https":
        return True
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _origin(use_cases: Services) -> str:
    return "/".join(use_cases.settings.base_url.split("/", 3)[:3])


def _context(realm: Realm) -> str:
    """What is sealed for one realm opens in no other place."""
    return f"console:{realm}"


def _now(use_cases: Services) -> int:
    return int(use_cases.clock.now().timestamp())
