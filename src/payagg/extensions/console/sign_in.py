"""Signing in with a token or by a link of `dev`, signing out, a user's own sessions, where `/` leads, and the files of
pages."""

import hmac
from collections.abc import Mapping
from typing import Any

from litestar import Response, get, post
from litestar.datastructures import Cookie
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from payagg.domain.audit import ActorRealm
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.extensions import DevPages
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.http.server.wire import envelope, whole_body
from payagg.extensions.console import session as sessions
from payagg.extensions.console.api import ApiRefused, OwnApi, part
from payagg.extensions.console.console_sessions import Console, digest
from payagg.extensions.console.page_request import PAGES, PageRequest, Pages, fields_of, notice
from payagg.extensions.console.pages import ASSETS, render_page, see_other
from payagg.extensions.console.session import HOME, Realm, Session

ENDED = "You are signed out, or the token has expired. Sign in again."
NO_TOKENS = "Tokens are for machines here: sign in with your account."
NO_BUSINESS = "This token's user manages no business: an OWNER or ADMIN of one signs in here, with a verified address."
REFUSED = {
    401: "This token is not valid, or it has expired. Get a new one and try again.",
    403: NO_BUSINESS,
}
NO_TLS = (
    "The console is open over https alone: a browser would send the sign-in in the clear. "
    "Whoever runs this service sets PAYAGG_BASE_URL to its https address."
)
MANAGED = "/merchant/businesses"
NOT_ADMIN = "This token is not an administrator's."


async def sign_in_form(
    request: AnyRequest, realm: Realm, problem: str | None = None, status: int = 200
) -> Response[bytes]:
    use_cases = services(request)
    if sessions.needs_tls(use_cases):
        return notice(request, 400, NO_TLS)
    session = await sessions.find_session(request, realm, is_sign_in=True) or sessions.visitor(use_cases, realm)
    issuer = use_cases.of(Console).issuer
    facts = {
        "realm": realm,
        "home": HOME[realm],
        "form_token": session.form_token,
        "issuer": issuer.host if issuer else None,
        "takes_tokens": _takes_tokens(use_cases),
        "problem": problem and {"message": problem, "field": None},
    }
    response = render_page(use_cases, "sign_in", facts, status)
    response.set_cookie(sessions.cookie(use_cases, session))
    return response


def _takes_tokens(use_cases: Services) -> bool:
    """When an issuer signs people in, a copied token must not."""
    return use_cases.of(Console).issuer is None or use_cases.settings.dev


async def let_in(request: AnyRequest, session: Session) -> Cookie:
    """The cookie of a session that the API accepts: it is tried before it is set. Raises Refusal or ApiRefused."""
    found = await ensure_accepted(OwnApi(request, session.credential), session.realm)
    if session.realm == "merchant" and not found["businesses"]:
        raise Refusal(ErrorCode.FORBIDDEN)
    return await sessions.begin_session(request, session)


async def ensure_accepted(api: OwnApi, realm: Realm) -> Any:
    """The first call of a signed-in user; raises ApiRefused for a revoked one."""
    return await api.get(MANAGED if realm == "merchant" else "/admin/gateways")


async def _sign_in(request: AnyRequest, realm: Realm) -> Response[bytes]:
    use_cases = services(request)
    sent = fields_of(request, await whole_body(request))
    sessions.ensure_from_our_page(
        request, await sessions.find_session(request, realm, is_sign_in=True), sent.get("form_token", "")
    )
    if not _takes_tokens(use_cases):
        return await sign_in_form(request, realm, NO_TOKENS, 403)
    try:
        cookie = await let_in(request, sessions.signed_in(use_cases, realm, sent.get("token", "").strip()))
    except Refusal as refusal:
        status = 401 if refusal.code is ErrorCode.UNAUTHORIZED else 403 if refusal.code is ErrorCode.FORBIDDEN else 400
        words = (
            refusal.message if status == 400 else NOT_ADMIN if (status, realm) == (403, "admin") else REFUSED[status]
        )
        return await sign_in_form(request, realm, words, status)
    except ApiRefused as refused:
        if refused.status >= 500:
            raise
        return await sign_in_form(request, realm, REFUSED.get(refused.status, refused.message), refused.status)
    response = see_other(use_cases, HOME[realm])
    response.set_cookie(cookie)
    return response


async def _sign_out(request: AnyRequest, realm: Realm) -> Response[bytes]:
    use_cases = services(request)
    sent = fields_of(request, await whole_body(request))
    session = await sessions.find_session(request, realm)
    if session is not None:
        sessions.ensure_from_our_page(request, session, sent.get("form_token", ""))
        own = digest(session.form_token)
        await use_cases.of(Console).sessions.end(ActorRealm(realm), session.subject, own)
    response = see_other(use_cases, f"{HOME[realm]}/sign-in")
    response.set_cookie(sessions.no_cookie(use_cases, realm))
    return response


def _for_realm(realm: Realm) -> list[HTTPRouteHandler]:
    @get(f"{HOME[realm]}/sign-in", include_in_schema=False, exception_handlers=PAGES)
    async def sign_in_page(request: AnyRequest) -> Response[bytes]:
        return await sign_in_form(request, realm, ENDED if "ended" in request.query_params else None)

    @post(f"{HOME[realm]}/sign-in", include_in_schema=False, exception_handlers=PAGES, status_code=200)
    async def sign_in(request: AnyRequest) -> Response[bytes]:
        return await _sign_in(request, realm)

    @post(f"{HOME[realm]}/sign-out", include_in_schema=False, exception_handlers=PAGES, status_code=200)
    async def sign_out(request: AnyRequest) -> Response[bytes]:
        return await _sign_out(request, realm)

    return [sign_in_page, sign_in, sign_out]


def _own_sessions(realm: Realm) -> list[HTTPRouteHandler]:
    """Where the user is signed in, and ending one or all others. The API is called first, as on every page: it refuses
    a revoked user."""
    path = f"{HOME[realm]}/sessions"

    pages = Pages(realm)

    @pages.page(path)
    async def sessions_page(request: PageRequest) -> Response[bytes]:
        await ensure_accepted(request.api, realm)
        found = await request.services.of(Console).sessions.of(ActorRealm(realm), request.session.subject)
        own = digest(request.session.form_token)
        facts = {"realm": realm, "home": HOME[realm], "section": "", "own": own, "sessions": found}
        return request.page("sessions", facts)

    @pages.form(f"{path}/{{session:str}}/end")
    async def end(request: PageRequest) -> Response[bytes]:
        await ensure_accepted(request.api, realm)
        try:
            session = bytes.fromhex(request.path["session"])
        except ValueError:
            raise Refusal(ErrorCode.NOT_FOUND) from None
        await request.services.of(Console).sessions.end(ActorRealm(realm), request.session.subject, session)
        return request.see_other(path, "session-ended")

    @pages.form(f"{path}/end-others")
    async def end_others(request: PageRequest) -> Response[bytes]:
        await ensure_accepted(request.api, realm)
        own = digest(request.session.form_token)
        await request.services.of(Console).sessions.end_others(ActorRealm(realm), request.session.subject, own)
        return request.see_other(path, "sessions-ended")

    return pages


of_merchants = Pages("merchant")


@of_merchants.page("/console")
async def console(request: PageRequest) -> Response[bytes]:
    """Redirects a user with one business to it; others choose."""
    found = (await request.api.get(MANAGED))["businesses"]
    only = len(found) == 1
    return request.see_other(f"/console/business/{part(found[0]['id'])}/sandbox" if only else "/console/businesses")


@of_merchants.page("/console/businesses")
async def businesses(request: PageRequest) -> Response[bytes]:
    return request.page("choose", await request.api.get(MANAGED))


@get("/console/assets/{digest:str}/{name:str}", include_in_schema=False)
async def file(request: AnyRequest, digest: FromPath[str], name: FromPath[str]) -> Response[bytes]:
    return ASSETS.answer(digest, name, request.headers.get("accept-encoding", ""))


@get("/", include_in_schema=False)
async def root(request: AnyRequest) -> Response[Any]:
    """Browsers are redirected to the console; programs get a list of addresses."""
    use_cases = services(request)
    if "text/html" in request.headers.get("accept", ""):
        return see_other(use_cases, "/console")
    origin = use_cases.settings.base_url
    names = {"api": "/api/v1", "description": "/openapi.json", "docs": "/docs", "console": "/console"}
    links = {name: origin + path for name, path in names.items()}
    return envelope({"service": "payagg", **links}, headers={"Vary": "Accept", "Cache-Control": "no-store"})


routes: list[HTTPRouteHandler] = [root, file, *of_merchants]
for own in HOME:
    routes += [*_for_realm(own), *_own_sessions(own)]


CODE_BYTES = 12


def dev_pages(core: Services, tokens: Mapping[str, str]) -> DevPages:
    """Signs in with the token of the link's realm."""
    this_run = core.entropy.hex(CODE_BYTES)

    @get("/dev/console/{realm:str}/{code:str}")
    async def enter(request: AnyRequest, realm: FromPath[str], code: FromPath[str]) -> Response[bytes]:
        use_cases = services(request)
        found: sessions.Realm | None = next((one for one in sessions.HOME if one == realm), None)
        if found is None or not hmac.compare_digest(code.encode(), this_run.encode()):
            return Response(b"This link is of another run: the terminal shows the new one.", status_code=404)
        session = sessions.signed_in(use_cases, found, tokens[found])
        response = see_other(use_cases, sessions.HOME[found])
        response.set_cookie(await sessions.begin_session(request, session))
        return response

    base = f"{core.settings.base_url}/dev/console"
    return DevPages(
        [enter],
        {"consoleUrl": f"{base}/merchant/{this_run}", "adminConsoleUrl": f"{base}/admin/{this_run}"},
    )
