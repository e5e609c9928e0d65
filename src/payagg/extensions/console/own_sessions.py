"""A user's own sessions: where they are signed in, and ending one. The API is called first, as on every page: it
refuses a revoked user."""

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from payagg.domain.audit import ActorRealm
from payagg.domain.errors import ErrorCode, Refusal
from payagg.extensions.console.console_sessions import digest
from payagg.extensions.console.page_request import PageRequest, form, page
from payagg.extensions.console.services import Console
from payagg.extensions.console.session import HOME, Realm
from payagg.extensions.console.sign_in import ensure_accepted


def _for_realm(realm: Realm) -> list[HTTPRouteHandler]:
    path = f"{HOME[realm]}/sessions"

    @page(path, realm)
    async def sessions_page(request: PageRequest) -> Response[bytes]:
        await ensure_accepted(request.api, realm)
        found = await request.services.of(Console).sessions.of(ActorRealm(realm), request.session.subject)
        own = digest(request.session.form_token)
        facts = {"realm": realm, "home": HOME[realm], "section": "", "own": own, "sessions": found}
        return request.page("sessions", facts)

    @form(f"{path}/{{session:str}}/end", realm)
    async def end(request: PageRequest) -> Response[bytes]:
        await ensure_accepted(request.api, realm)
        try:
            session = bytes.fromhex(request.path["session"])
        except ValueError:
            raise Refusal(ErrorCode.NOT_FOUND) from None
        await request.services.of(Console).sessions.end(ActorRealm(realm), request.session.subject, session)
        return request.see_other(path, "session-ended")

    @form(f"{path}/end-others", realm)
    async def end_others(request: PageRequest) -> Response[bytes]:
        await ensure_accepted(request.api, realm)
        own = digest(request.session.form_token)
        await request.services.of(Console).sessions.end_others(ActorRealm(realm), request.session.subject, own)
        return request.see_other(path, "sessions-ended")

    return [sessions_page, end, end_others]


routes = [*_for_realm("merchant"), *_for_realm("admin")]
