"""The pages and their routes, at the root: the payment's own, the provider's launch page and refusals, with the headers
every page carries."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from markupsafe import Markup

from payagg.application.schemas.checkout import CheckoutPage, PublicPaymentDetail
from payagg.domain.errors import ErrorCode, Kind, Refusal
from payagg.domain.payment import Status
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.api.auth import public_reference
from payagg.entrypoints.http.checkout_page import states, words
from payagg.entrypoints.http.checkout_page.markup import ASSETS, GUARD, STYLE, Head, fill, head, of_content
from payagg.entrypoints.http.server import errors
from payagg.entrypoints.http.server.page_assets import takes_gzip
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.http.server.wire import FIELDS, ReadyAnswer

LONG_AMOUNT = 15  # characters that the largest type has room for at 320 px
NOTICES = {
    Kind.INVALID: (
        "This payment link is not complete",
        "Check that the whole link was copied, or ask the merchant for a new one.",
    ),
    Kind.MISSING: ("We can't find this payment", "The link may be mistyped. Ask the merchant for a new payment link."),
    Kind.THROTTLED: ("Too many attempts", "Please wait a minute, then open the payment link again."),
}
NO_PAYMENT = (Kind.INVALID, Kind.MISSING)  # opening the same link again finds nothing either
NOTICE_OTHERWISE = (
    "We can't load this payment right now",
    "Nothing has been charged by opening this page. Please try again in a moment.",
)
TEST_MODE, NOTHING = fill("test_mode"), Markup("")


class Mount:
    """The deployment's context: the path prefix its proxy adds, and the policies of its pages."""

    def __init__(self, base_url: str, sdk: str) -> None:
        self.base_url = base_url.rstrip("/")
        self.root = urlsplit(base_url).path.rstrip("/")
        self.assets = f"{self.root}/checkout/assets/{ASSETS.digest}"
        parts = urlsplit(sdk)
        self.headers, self.launch_headers = _headers(""), _headers(f"{parts.scheme}://{parts.netloc}")


mount = cache(Mount)


def _checkout(use_cases: Services, page: CheckoutPage, accepted: str) -> Response[bytes]:
    payment, here = page.payment, _here(use_cases)
    amount = words.naira(payment.amount)
    state = states.state(page, f"{here.base_url}/checkout/{payment.reference}", here.root)
    is_open = payment.status is Status.INITIATED
    content = fill(
        "checkout",
        **_facts(use_cases, payment),
        home=page.redirect_url or "",
        status=payment.status.value,
        gateway=payment.gateway or "",
        merchant=payment.business_name,
        amount=amount,
        long=" long" if len(amount) > LONG_AMOUNT else "",
        expires=int(payment.expires_at.timestamp() * 1000),
        test_mode=TEST_MODE if payment.environment is Environment.SANDBOX else "",
        window=fill("window", until=words.hour(payment.expires_at)) if is_open else "",
        state=state.content,
    )
    title = f"{state.title} · {amount} to {payment.business_name}"
    top = head(here.assets, "checkout.js", ("public.js", "view.js"))
    return _html(top, here.headers, title, content, extra=state.head, accepted=accepted)


def _launch(use_cases: Services, payment: PublicPaymentDetail, accepted: str) -> Response[bytes]:
    """The page that runs the provider's own script; the script's address comes from the settings, never from
    the link."""
    here = _here(use_cases)
    sdk = Markup('<script id="sdk" src="{}" async></script>\n').format(use_cases.settings.sdk_url)
    content = fill("launch", **_facts(use_cases, payment))
    top = head(here.assets, "launch.js", ("public.js",))
    return _html(top, here.launch_headers, "Payment", content, extra=sdk, accepted=accepted)


def _notice(use_cases: Services, refusal: Refusal, status: int) -> Response[bytes]:
    title, text = NOTICES.get(refusal.code.kind, NOTICE_OTHERWISE)
    here = _here(use_cases)
    again = NOTHING if refusal.code.kind in NO_PAYMENT else fill("again")
    content = fill("notice", title=title, text=text, again=again)
    later = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    return _html(head(here.assets, None, ()), here.headers | later, title, content, status=status)


def _here(use_cases: Services) -> Mount:
    return mount(use_cases.settings.base_url, use_cases.settings.sdk_url)


def _facts(use_cases: Services, payment: PublicPaymentDetail) -> dict[str, object]:
    root = _here(use_cases).root
    return {
        "reference": payment.reference,
        "api": f"{root}/api/v1/public/payments/{payment.reference}",
        "page": f"{root}/checkout/{payment.reference}",
        "now": int(use_cases.clock.now().timestamp() * 1000),
    }


def _html(
    top: Head,
    headers: dict[str, str],
    title: str,
    content: Markup,
    *,
    extra: Markup = NOTHING,
    accepted: str = "",
    status: int = 200,
) -> Response[bytes]:
    zipped = takes_gzip(accepted)
    body = top.document(title, content, extra, zipped=zipped)
    sent = headers | {"Content-Encoding": "gzip"} if zipped else headers
    return ReadyAnswer(body, status, sent, b"text/html; charset=utf-8")


def _headers(provider: str) -> dict[str, str]:
    """Headers beside those of every answer. `provider` is the one foreign origin a launch page allows."""
    foreign = f" {provider}" if provider else ""
    policy = [
        "default-src 'none'",
        f"script-src 'self' {of_content(GUARD)}{foreign}",
        f"style-src {of_content(STYLE)}",
        "img-src 'self'",
        "connect-src 'self'",
        f"frame-src {provider}" if provider else "frame-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "base-uri 'none'",
    ]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "Cache-Control": "no-store",
        "Vary": "Accept-Encoding",
        "X-Frame-Options": "DENY",
        "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), usb=()",
        "X-Robots-Tag": "noindex, nofollow",
    }


def _refusal_page(request: AnyRequest, refusal: Refusal) -> Response[bytes]:
    if refusal.cell is not None:
        return errors.refusal_envelope(refusal)  # for the home cell; no payer sees it
    return _notice(services(request), refusal, errors.HTTP_STATUS[refusal.code.kind])


PAGES = errors.pages(_refusal_page)


async def _show_checkout(request: AnyRequest) -> Response[bytes]:
    """The stored payment; guesses count against the same limit as on the public endpoints."""
    use_cases, reference = services(request), request.path_params["reference"]
    page = await public_reference.admit(request, use_cases, lambda _: use_cases.checkout.page(reference))
    return _checkout(use_cases, page, _accept_header(request))


async def _show_launch(request: AnyRequest) -> Response[bytes]:
    use_cases, reference = services(request), request.path_params["reference"]
    payment = await public_reference.admit(request, use_cases, lambda _: use_cases.checkout.detail(reference))
    return _launch(use_cases, payment, _accept_header(request))


async def _refuse_link(request: AnyRequest) -> Response[bytes]:
    """One that lost its reference on its way to the payer, or got a slash behind it."""
    return _refusal_page(request, Refusal(ErrorCode.INVALID_REFERENCE))


async def _send_asset(request: AnyRequest) -> Response[bytes]:
    return ASSETS.answer(**request.path_params, accepted=_accept_header(request))


def _accept_header(request: AnyRequest) -> str:
    scope: Any = request.scope
    accepted: bytes = scope[FIELDS].get(b"accept-encoding", b"")
    return accepted.decode("latin-1")


def _route(path: str, endpoint: Callable[[AnyRequest], Awaitable[Response[bytes]]]) -> HTTPRouteHandler:
    """Called by `dispatch`, past Litestar's layers."""
    return get(path, include_in_schema=False, exception_handlers=PAGES, opt={"endpoint": endpoint})(endpoint)


routes = [
    _route("/checkout", _refuse_link),
    _route("/checkout/{reference:str}", _show_checkout),
    _route("/checkout/{reference:str}/launch", _show_launch),
    _route("/checkout/assets/{digest:str}/{name:str}", _send_asset),
]
