"""Sign-in at an OpenID Connect issuer: the browser goes there and returns with a code."""

import hmac
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import structlog
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server.rate_limits import client_of, limits
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.extensions.console import session as sessions
from payagg.extensions.console.api import ApiRefused
from payagg.extensions.console.console_sessions import Console
from payagg.extensions.console.openid import IssuerAway, OpenIdIssuer, SignInFlow, SignInRefused
from payagg.extensions.console.page_request import PAGES
from payagg.extensions.console.pages import render_page
from payagg.extensions.console.session import HOME, NAMES, Realm
from payagg.extensions.console.settings import ConsoleSettings
from payagg.extensions.console.sign_in import let_in, sign_in_form

FLOW_SECONDS = 600  # to sign in at the issuer
AWAY = "The sign-in service does not answer as it should. Try again in a moment."
OUT_OF_DATE = "This sign-in is out of date, or was begun in another browser. Begin again."
REFUSED = "The sign-in service did not let you in. Begin again."
NO_PLACE = {
    "merchant": "You manage no business here: an OWNER or ADMIN of one signs in, with a verified address.",
    "admin": "Your account has no administrator's role here.",
}
_log = structlog.get_logger("payagg.console")


async def _start(request: AnyRequest, realm: Realm) -> Response[bytes]:
    use_cases = services(request)
    issuer, hex = _issuer(use_cases), use_cases.entropy.hex
    flow = SignInFlow(state=hex(16), nonce=hex(16), verifier=hex(32))
    await _count_question(request)
    try:
        page = await issuer.page(flow, _redirect_uri(use_cases, realm))
    except IssuerAway as fault:
        return await _away(request, realm, fault)
    response = Response(b"", status_code=303, headers={"Location": page, "Cache-Control": "no-store"})
    content = {**asdict(flow), "expires": sessions.now_of(use_cases) + FLOW_SECONDS}
    # Lax: the issuer's page, another site, leads back here.
    response.set_cookie(sessions.seal_cookie(use_cases, _name(realm), content, FLOW_SECONDS, "lax"))
    return response


async def _back(request: AnyRequest, realm: Realm) -> Response[bytes]:
    use_cases, query = services(request), request.query_params
    issuer, flow = _issuer(use_cases), _flow(request, realm)
    if flow is None or not hmac.compare_digest(str(query.get("state")).encode(), flow.state.encode()):
        return await sign_in_form(request, realm, OUT_OF_DATE, 400)
    if "code" not in query:
        _log.warning("the issuer refused a sign-in", error=str(query.get("error"))[:64])
        return await sign_in_form(request, realm, REFUSED, 403)
    await _count_question(request)
    try:
        said = await issuer.claims(str(query["code"]), flow, _redirect_uri(use_cases, realm))
    except IssuerAway as fault:
        return await _away(request, realm, fault)
    except SignInRefused as refused:
        _log.warning("a sign-in was refused", reason=str(refused))
        return await sign_in_form(request, realm, REFUSED, 403)
    own = {"emailVerified": said.get("email_verified")} if realm == "merchant" else {"role": _role(use_cases, said)}
    try:
        cookie = await let_in(request, sessions.signed_in_by_issuer(use_cases, realm, said["sub"], **own))
    except ApiRefused as refused:
        if refused.status >= 500:
            raise
        return await sign_in_form(request, realm, NO_PLACE[realm], 403)
    except Refusal:
        return await sign_in_form(request, realm, NO_PLACE[realm], 403)
    # A redirect would count as the issuer's navigation and lack the session's cookie (SameSite=Strict), so a page of
    # ours links on.
    response = render_page(use_cases, "signed_in", {"home": HOME[realm]})
    response.set_cookie(cookie)
    response.set_cookie(sessions.forgotten(use_cases, _name(realm)))
    return response


async def _count_question(request: AnyRequest) -> None:
    """Raises RATE_LIMITED. Anybody may begin a sign-in, and an issuer that is asked too often answers nobody of us."""
    await limits(request).guesses.hit(client_of(request))


async def _away(request: AnyRequest, realm: Realm, fault: IssuerAway) -> Response[bytes]:
    _log.warning("the issuer that signs people in cannot be used", reason=str(fault))
    return await sign_in_form(request, realm, AWAY, 503)


def _issuer(use_cases: Services) -> OpenIdIssuer:
    """Raises NOT_FOUND where none signs people in."""
    issuer = use_cases.of(Console).issuer
    if issuer is None:
        raise Refusal(ErrorCode.NOT_FOUND)
    return issuer


def _flow(request: AnyRequest, realm: Realm) -> SignInFlow | None:
    """The sign-in this browser began, None when it is too old."""
    content = sessions.open_cookie(request, _name(realm)) or {"expires": 0}
    return SignInFlow(**content) if content.pop("expires") > sessions.now_of(services(request)) else None


def _role(use_cases: Services, said: Mapping[str, Any]) -> str | None:
    """The highest role mapped from the claim's values; None without one."""
    claim, roles = use_cases.settings.of(ConsoleSettings).oidc_roles or ("", ())
    values = said.get(claim)
    held = values if isinstance(values, list) else [values]
    return next((role for value, role in roles if value in held), None)


def _redirect_uri(use_cases: Services, realm: Realm) -> str:
    return f"{use_cases.settings.base_url}{HOME[realm]}/sign-in/back"


def _name(realm: Realm) -> str:
    return f"{NAMES[realm]}_flow"


def _for_realm(realm: Realm) -> list[HTTPRouteHandler]:
    @get(f"{HOME[realm]}/sign-in/start", include_in_schema=False, exception_handlers=PAGES)
    async def start(request: AnyRequest) -> Response[bytes]:
        return await _start(request, realm)

    @get(f"{HOME[realm]}/sign-in/back", include_in_schema=False, exception_handlers=PAGES)
    async def back(request: AnyRequest) -> Response[bytes]:
        return await _back(request, realm)

    return [start, back]


routes = [*_for_realm("merchant"), *_for_realm("admin")]
