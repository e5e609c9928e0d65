"""Declares a page or a form of the console: session, form, call, page, in one order, refusals as pages.

A merchant's page has a business and an environment in its address, so no page, tab or bookmark ever shows the other
environment's data."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import structlog
from litestar import Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from multipart import MultipartError, MultipartParser, parse_options_header

from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.server import errors
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.http.server.wire import whole_body
from payagg.extensions.console import session as sessions
from payagg.extensions.console.api import ApiRefused, OwnApi, part
from payagg.extensions.console.pages import of, render_page, see_other
from payagg.extensions.console.session import HOME, Realm, Session

FIELDS_MAX = 300
FORM_TYPE = "application/x-www-form-urlencoded"
TITLES = {
    400: "That cannot be done",
    401: "You are signed out",
    403: "You may not do that",
    404: "There is nothing here",
    409: "That cannot be done now",
    413: "That is too large",
    429: "Too many attempts",
    503: "Try again in a moment",
}
# The messages after a form succeeded: our own texts, by the name in the page's address.
DONE = {
    "key-revoked": "The key is revoked. Requests with it fail from now on.",
    "webhook-changed": "The endpoint is changed.",
    "webhook-off": "The endpoint is deactivated: nothing is sent to it any more.",
    "webhook-on": "The endpoint is active again.",
    "redelivered": "The delivery is on its way again.",
    "checkout-changed": "The checkout settings are saved.",
    "simulated": "The outcome is set.",
    "gateway-created": "The gateway is made. It is disabled until you enable it.",
    "gateway-changed": "The gateway is changed.",
    "gateway-enabled": "The gateway is enabled for every active business that did not turn it off.",
    "gateway-draining": "The gateway drains: no new checkouts; payments under way may settle.",
    "gateway-deleted": "The gateway is deleted.",
    "credentials-saved": "The credentials are stored. They are never shown again.",
    "overlap-ended": "Only the secrets on file prove events from now on.",
    "logo-saved": "The logo is stored.",
    "business-created": "The business is made.",
    "business-changed": "The business is changed.",
    "member-set": "The member is set.",
    "member-removed": "The member is removed.",
    "anomaly-changed": "The anomaly is changed.",
    "resolution-asked": "Asked for. Nothing has changed yet: another administrator confirms within 24 hours.",
    "session-ended": "The session is ended: its browser is signed out.",
    "sessions-ended": "Every other session is ended.",
    "resolution-confirmed": "The payment has failed.",
}
_log = structlog.get_logger("payagg.console")


@dataclass(frozen=True)
class PageRequest:
    """One request of a signed-in browser. `problem` is the API's refusal when a form's page is shown again; `form` is
    what was sent."""

    request: AnyRequest
    services: Services
    session: Session
    api: OwnApi
    path: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    problem: ApiRefused | None = None
    body: bytes = field(default=b"", repr=False)  # of a form with a file, raw

    def query(self, name: str) -> str:
        return str(self.request.query_params.get(name, ""))

    def form_value(self, name: str) -> str | None:
        """A form field's value; None when empty."""
        return self.form.get(name, "").strip() or None

    def has_changed(self, name: str) -> bool:
        """Whether a field differs from what its page showed: the rest is not sent, as another may have changed it
        since."""
        return self.form.get(f"was.{name}") != self.form.get(name, "")

    def at(self, **names: str) -> "PageRequest":
        """The same request with another path's parameters."""
        return replace(self, path={**self.path, **names}, form={})

    def page(self, template: str, facts: Mapping[str, Any]) -> Response[bytes]:
        """With the problem's status, if there is one."""
        shown = {
            "request": self,
            "form_token": self.session.form_token,
            "problem": self.problem,
            "form": self.form,
            "done": DONE.get(self.query("done")),
            "address": self.request.scope["path"],
            **facts,
        }
        return render_page(self.services, template, shown, self.problem.status if self.problem else 200)

    def see_other(self, path: str, done: str = "") -> Response[bytes]:
        """With the query of the form's own address, such as the filter of its list."""
        query = {**self.request.query_params, "done": done}
        return see_other(self.services, f"{path}?{urlencode(query)}" if done else path)


Show = Callable[[PageRequest], Awaitable[Response[bytes]]]
S = TypeVar("S", bound=Show)


class Pages(list[HTTPRouteHandler]):
    """The pages and forms of one part of the console, for the signed-in users of a realm."""

    def __init__(self, realm: Realm) -> None:
        super().__init__()
        self._realm: Realm = realm

    def page(self, path: str) -> Callable[[S], S]:
        """Declares a page; whoever is not signed in is redirected to the sign-in."""
        return self._declare("GET", path, None, {})

    def form(self, path: str, back: Show | None = None, **opt: Any) -> Callable[[S], S]:
        """Declares a form's action. When the API refuses it as bad input or by state, `back` shows the form's page
        again, with the refusal and what was sent."""
        return self._declare("POST", path, back, opt)

    def action(
        self,
        path: str,
        call: str,
        to: str,
        done: str,
        *,
        back: Show,
        body: Callable[[PageRequest], Any] = lambda _: None,
    ) -> None:
        """Declares a form that is one `call` of the API, as "POST /admin/gateways/{gateway_id}/enable", and leads back
        `to` a page: both with the parts of the form's own `path`."""
        method, _, target = call.partition(" ")

        @self.form(path, back)
        async def act(request: PageRequest) -> Response[bytes]:
            names = {name: part(value) for name, value in request.path.items()}
            await request.api.call(method, target.format(**names), body(request))
            return request.see_other(to.format(**names), done)

    def _declare(self, method: Any, path: str, back: Show | None, opt: dict[str, Any]) -> Callable[[S], S]:
        realm = self._realm

        def declare(show: S) -> S:
            async def endpoint(request: AnyRequest) -> Response[bytes]:
                use_cases = services(request)
                session = await sessions.find_session(request, realm)
                if session is None:
                    return see_other(use_cases, f"{HOME[realm]}/sign-in{'?ended=1' if method == 'POST' else ''}")
                body, sent = b"", dict[str, str]()
                if method == "POST":
                    body = await whole_body(request)
                    sent = fields_of(request, body)
                    sessions.ensure_from_our_page(request, session, sent.get("form_token", ""))
                api = OwnApi(request, session.credential)
                page_request = PageRequest(request, use_cases, session, api, request.path_params, sent, body=body)
                try:
                    return await show(page_request)
                except ApiRefused as refused:
                    if refused.status == 401:
                        return see_other(use_cases, f"{HOME[realm]}/sign-in?ended=1")
                    if back is None or refused.status not in (400, 403, 409, 413, 429):
                        raise
                    return await back(replace(page_request, problem=refused))

            route = HTTPRouteHandler(
                path, http_method=method, exception_handlers=PAGES, include_in_schema=False, status_code=200, opt=opt
            )
            self.append(route(endpoint))
            return show

        return declare


def fields_of(request: AnyRequest, body: bytes) -> dict[str, str]:
    """The form's fields, the last of each name, without files; raises VALIDATION_ERROR for what no form of ours
    sends."""
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    try:
        if media_type == "multipart/form-data":
            parts = MultipartParser(
                BytesIO(body), options.get("boundary", ""), spool_limit=len(body), memory_limit=len(body), strict=True
            )
            # A part may name any codec of Python's: some take the square of a text, some make no text of it.
            return {one.name: one.raw.decode() for one in parts if not one.filename}
        if media_type != FORM_TYPE:
            raise ValueError(media_type)
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"))
    except (ValueError, MultipartError):
        raise Refusal(ErrorCode.VALIDATION_ERROR, "The form cannot be read.") from None


def notice(request: AnyRequest, status: int, text: str, retry_after: str | None = None) -> Response[bytes]:
    realm: Realm = "admin" if _requested_path(request).startswith(HOME["admin"]) else "merchant"
    facts = {"title": TITLES.get(status, "Something went wrong on our side"), "text": text, "home": HOME[realm]}
    response = render_page(services(request), "notice", facts, status)
    if retry_after is not None:
        response.headers["Retry-After"] = retry_after
    return response


def _requested_path(request: AnyRequest) -> str:
    """The requested path: the edge turns an odd one into one that matches nothing."""
    scope: Any = request.scope
    return str((scope.get("raw_path") or scope["path"].encode()).decode("latin-1"))


def refused_by_framework(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """As the API's, except that an unknown address is a page in the console, and outside the API for every browser."""
    path = _requested_path(request)
    is_read = "text/html" in request.headers.get("accept", "") and not path.startswith("/api/")
    if error.status_code == 404 and (is_read or path.startswith(f"{HOME['merchant']}/")):
        return notice(request, 404, "The address may be mistyped.")
    return errors.refused_by_framework(request, error)


def _refusal_page(request: AnyRequest, refusal: Refusal) -> Response[bytes]:
    wait = str(refusal.retry_after) if refusal.retry_after is not None else None
    return notice(request, errors.HTTP_STATUS[refusal.code.kind], refusal.message, wait)


def _refused_by_api(request: AnyRequest, refused: ApiRefused) -> Response[bytes]:
    return notice(request, refused.status, of(refused.message, refused.field), refused.retry_after)


PAGES = errors.pages(_refusal_page) | {ApiRefused: _refused_by_api}
EXCEPTION_HANDLERS = {HTTPException: refused_by_framework}


BASE = "/console/business/{business_id:str}/{environment:str}"


@dataclass(frozen=True)
class BusinessContext:
    """`home` and `url` are addresses of the console, `api` a path of the API."""

    business: dict[str, Any]
    environment: str
    home: str

    @property
    def name(self) -> str:
        return self.environment.lower()

    @property
    def url(self) -> str:
        return f"{self.home}/{self.name}"

    @property
    def api(self) -> str:
        return f"/merchant/businesses/{part(self.business['id'])}"


async def business_context(request: PageRequest) -> BusinessContext:
    """Raises NOT_FOUND for an unknown environment, and ApiRefused for a business that is not the user's."""
    environment = request.path["environment"].upper()
    if environment not in Environment.__members__ or request.path["environment"].isupper():
        raise Refusal(ErrorCode.NOT_FOUND)
    business_id = part(request.path["business_id"])
    business = await request.api.get(f"/merchant/businesses/{business_id}")
    return BusinessContext(business, environment, f"/console/business/{business_id}")
