"""Routes for other cells and operators. Outside the API and its description, open to the cells' secret, and there only
where cells are set."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from litestar import Response, Router
from litestar.handlers import HTTPRouteHandler

from payagg import __version__
from payagg.application.ports.providers import ProviderEvent
from payagg.application.use_case import in_transaction
from payagg.domain.errors import ErrorCode, Refusal, misdirected_refusal
from payagg.entrypoints.bootstrap import RELEASE_SCHEMA, Services
from payagg.entrypoints.http.api.auth import bearer
from payagg.entrypoints.http.api.provider_events import BODY_MAX
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.http.server.wire import ReadyAnswer, envelope, whole_body
from payagg.extensions.cells.among_cells import EVENT, AmongCells, among_cells
from payagg.extensions.cells.domain import CellState
from payagg.extensions.cells.gateway_replication import replication_over
from payagg.extensions.cells.places import By, Destination
from payagg.extensions.cells.postgres import CellRows

PATH = "/internal/cell"
FINGERPRINT_DIGITS = 12
Answer = Callable[[AnyRequest, Services, AmongCells], Awaitable[Response[bytes]]]


def routes(core: Services) -> list[Router]:
    """Every route between cells."""
    if among_cells(core) is None:
        return []
    known = [_known("keys", By.KEY, "[0-9a-f]{64}"), _known("businesses", By.BUSINESS, ".+")]
    return [Router(PATH, route_handlers=[_state, _gateways, _names, _event, *known])]


def _internal(method: Literal["GET", "POST"], path: str, **opt: Any) -> Callable[[Answer], HTTPRouteHandler]:
    def declare(answer: Answer) -> HTTPRouteHandler:
        async def endpoint(request: AnyRequest) -> Response[bytes]:
            use_cases = services(request)
            among = among_cells(use_cases)
            presented = bearer(request)
            if among is None or not hmac.compare_digest(presented.encode(), among.secret.encode()):
                raise Refusal(ErrorCode.UNAUTHORIZED)
            return await answer(request, use_cases, among)

        return HTTPRouteHandler(path, http_method=method, opt=opt)(endpoint)

    return declare


@_internal("GET", "/")
async def _state(_: AnyRequest, use_cases: Services, among: AmongCells) -> Response[bytes]:
    # A digest of 32 random bytes reveals nothing.
    keys = {kid: hashlib.sha256(b"payagg encryption key " + key) for kid, key in use_cases.settings.encryption_keys}
    state = CellState(
        name=among.cells.own,
        release=__version__,
        schema=RELEASE_SCHEMA,
        fits=await use_cases.store.is_current(),
        database=await in_transaction(use_cases.store, lambda tx: tx.of(CellRows).database()),
        gateways=await replication_over(use_cases, among.others).version(),
        cells=list(among.cells.origins),
        keys={kid: digest.hexdigest()[:FINGERPRINT_DIGITS] for kid, digest in keys.items()},
    )
    return _plain(state)


@_internal("GET", "/gateways")
async def _gateways(_: AnyRequest, use_cases: Services, among: AmongCells) -> Response[bytes]:
    return _plain(await replication_over(use_cases, among.others).gateways_to_send())


@_internal("GET", "/names")
async def _names(request: AnyRequest, use_cases: Services, _: AmongCells) -> Response[bytes]:
    """Of every active key and business; 304 where who asks has just these."""
    async with use_cases.store.begin() as tx:
        names = msgspec.json.encode(await tx.of(CellRows).names())
    digest = f'"{hashlib.sha256(names).hexdigest()}"'
    is_known = request.headers.get("if-none-match") == digest
    return ReadyAnswer(b"" if is_known else names, 304 if is_known else 200, {"ETag": digest})


def _known(collection: str, by: By, form: str) -> HTTPRouteHandler:
    @_internal("GET", f"/{collection}/{{name:str}}")
    async def answer(request: AnyRequest, _: Services, among: AmongCells) -> Response[bytes]:
        """Whether it is this cell's, revoked or suspended too; MISDIRECTED_REQUEST where it moved."""
        name = request.path_params["name"]
        cell = await among.cell_of(Destination(by, name)) if re.fullmatch(form, name) else None
        if cell is None:
            raise Refusal(ErrorCode.NOT_FOUND)
        if cell != among.cells.own:
            raise misdirected_refusal(cell)
        return envelope({"known": True})

    return answer


@_internal("POST", "/events", body_max=2 * BODY_MAX)  # in Base64
async def _event(request: AnyRequest, use_cases: Services, _: AmongCells) -> Response[bytes]:
    """Handles an event that another cell keeps until this one has."""
    try:
        event = msgspec.json.decode(use_cases.vault.open(await whole_body(request), EVENT), type=ProviderEvent)
    except (ValueError, msgspec.DecodeError):
        raise Refusal(ErrorCode.VALIDATION_ERROR, "Is no event of a cell that has the same keys and release.") from None
    return envelope({"result": await use_cases.provider_events.handle(event)})


def _plain(value: Any) -> Response[bytes]:
    return ReadyAnswer(msgspec.json.encode(value), 200, None)
