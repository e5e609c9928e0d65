"""A user's own sessions: where they are signed in, and ending one. The API is called first, as on every page: it
refuses a revoked user."""

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from payagg.application.accounts.console_sessions import digest
from payagg.domain.audit import ActorRealm
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.console.session import HOME, Realm
from payagg.entrypoints.http.console.sign_in import ensure_accepted
from payagg.entrypoints.http.console.visit import PageRequest, form, page


def _for_realm(realm: Realm) -> list[HTTPRouteHandler]:
    path = f"{HOME[realm]}/sessions"

    @page(path, realm)
    async def sessions_page(visit: PageRequest) -> Response[bytes]:
        await ensure_accepted(visit.api, realm)
        found = await visit.services.console_sessions.of(ActorRealm(realm), visit.session.subject)
        own = digest(visit.session.form_token)
        facts = {"realm": realm, "home": HOME[realm], "section": "", "own": own, "sessions": found}
        return visit.page("sessions", facts)

    @form(f"{path}/{{session:str}}/end", realm)
    async def end(visit: PageRequest) -> Response[bytes]:
        await ensure_accepted(visit.api, realm)
        try:
            session = bytes.fromhex(visit.path["session"])
        except ValueError:
            raise Refusal(ErrorCode.NOT_FOUND) from None
        await visit.services.console_sessions.end(ActorRealm(realm), visit.session.subject, session)
        return visit.see_other(path, "session-ended")

    @form(f"{path}/end-others", realm)
    async def end_others(visit: PageRequest) -> Response[bytes]:
        await ensure_accepted(visit.api, realm)
        own = digest(visit.session.form_token)
        await visit.services.console_sessions.end_others(ActorRealm(realm), visit.session.subject, own)
        return visit.see_other(path, "sessions-ended")

    return [sessions_page, end, end_others]


routes = [*_for_realm("merchant"), *_for_realm("admin")]
