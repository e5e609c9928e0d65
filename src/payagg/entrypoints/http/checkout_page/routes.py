"""Routes of the hosted page, mounted at the root; every refusal is a page too."""

from typing import Any

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from payagg.domain.errors import Refusal
from payagg.entrypoints.http.api.auth import public_reference
from payagg.entrypoints.http.checkout_page import pages
from payagg.entrypoints.http.checkout_page.markup import ASSETS
from payagg.entrypoints.http.server import errors
from payagg.entrypoints.http.server.routing import services

AnyRequest = Request[Any, Any, Any]


def _refusal_page(request: AnyRequest, refusal: Refusal) -> Response[bytes]:
    if refusal.cell is not None:
        return errors.refusal_envelope(refusal)  # for the home cell; no payer sees it
    return pages.refusal_page(services(request), refusal, errors.HTTP_STATUS[refusal.code.kind])


PAGES = errors.pages(_refusal_page)


@get("/checkout/{reference:str}", include_in_schema=False, exception_handlers=PAGES)
async def checkout(request: AnyRequest, reference: FromPath[str]) -> Response[bytes]:
    """The stored payment; guesses count against the same limit as on the public endpoints."""
    use_cases = services(request)
    page = await public_reference.admit(request, use_cases, lambda _: use_cases.checkout.page(reference))
    return pages.checkout(use_cases, page, _accept_header(request))


@get("/checkout/{reference:str}/launch", include_in_schema=False, exception_handlers=PAGES)
async def launch(request: AnyRequest, reference: FromPath[str]) -> Response[bytes]:
    use_cases = services(request)
    payment = await public_reference.admit(request, use_cases, lambda _: use_cases.checkout.detail(reference))
    return pages.launch(use_cases, payment, _accept_header(request))


@get("/checkout/assets/{digest:str}/{name:str}", include_in_schema=False)
async def asset(request: AnyRequest, digest: FromPath[str], name: FromPath[str]) -> Response[bytes]:
    return ASSETS.answer(digest, name, _accept_header(request))


def _accept_header(request: AnyRequest) -> str:
    return request.headers.get("accept-encoding", "")


routes: list[HTTPRouteHandler] = [checkout, launch, asset]
