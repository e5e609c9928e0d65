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
from payagg.application.ports.providers import ProviderEventRoute
from payagg.application.use_case import in_transaction
from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.bootstrap import RELEASE_SCHEMA, Services
from payagg.entrypoints.http.api.auth import bearer
from payagg.entrypoints.http.api.provider_events import BODY_MAX, Acknowledgement
from payagg.entrypoints.http.server.routing import AnyRequest, services
from payagg.entrypoints.http.server.wire import ReadyAnswer, envelope, whole_body
from payagg.entrypoints.settings import Settings
from payagg.extensions.cells.among_cells import AmongCells, among_cells
from payagg.extensions.cells.domain import Cells, CellState
from payagg.extensions.cells.gateway_replication import replication_over
from payagg.extensions.cells.postgres import CellRows

PATH = "/internal/cell"
FINGERPRINT_DIGITS = 12
_DIGEST = re.compile("[0-9a-f]{64}")
Answer = Callable[[AnyRequest, Services, AmongCells], Awaitable[Response[bytes]]]


def routes(core: Services) -> list[Router]:
    """Every route between cells."""
    if among_cells(core) is None:
        return []
    handlers = [_state, _gateways, _names, _key, _business]
    return [Router(PATH, route_handlers=[*handlers, *map(_receiver, core.settings.event_routes)])]


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


async def state_of(use_cases: Services, cells: Cells, version: str) -> CellState:
    database = await in_transaction(use_cases.store, lambda tx: tx.of(CellRows).database())
    return CellState(
        name=cells.own,
        release=__version__,
        schema=RELEASE_SCHEMA,
        fits=await use_cases.store.is_current(),
        database=database,
        gateways=version,
        home=cells.home,
        keys=key_fingerprints(use_cases.settings),
    )


def key_fingerprints(settings: Settings) -> dict[str, str]:
    """A digest of 32 random bytes reveals nothing."""
    return {
        kid: hashlib.sha256(b"payagg encryption key " + key).hexdigest()[:FINGERPRINT_DIGITS]
        for kid, key in settings.encryption_keys
    }


@_internal("GET", "/")
async def _state(_: AnyRequest, use_cases: Services, among: AmongCells) -> Response[bytes]:
    return _plain(await state_of(use_cases, among.cells, await replication_over(use_cases, among.others).version()))


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


@_internal("GET", "/keys/{digest:str}")
async def _key(request: AnyRequest, use_cases: Services, among: AmongCells) -> Response[bytes]:
    """Whether the key with this SHA-256 is this cell's, a revoked one too."""
    digest = request.path_params["digest"]
    if not _DIGEST.fullmatch(digest):
        raise Refusal(ErrorCode.NOT_FOUND)
    if await use_cases.store.find_key(bytes.fromhex(digest)) is None:
        await among.ensure_key_here(bytes.fromhex(digest))
        raise Refusal(ErrorCode.NOT_FOUND)
    return envelope({"known": True})


@_internal("GET", "/businesses/{business_id:str}")
async def _business(request: AnyRequest, use_cases: Services, among: AmongCells) -> Response[bytes]:
    """Whether the business is this cell's, whatever its status."""
    business_id = request.path_params["business_id"]
    async with use_cases.store.begin() as tx:
        is_here = await tx.businesses.get(business_id) is not None
    if not is_here:
        await among.ensure_business_here(business_id)
        raise Refusal(ErrorCode.NOT_FOUND)
    return envelope({"known": True})


def _receiver(place: ProviderEventRoute) -> HTTPRouteHandler:
    @_internal("POST", f"/events{place.path}", body_max=BODY_MAX)
    async def receive(request: AnyRequest, use_cases: Services, _: AmongCells) -> Response[bytes]:
        sent = request.scope["headers"]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in sent}
        await use_cases.provider_events.receive(place, await whole_body(request), headers)
        return envelope(Acknowledgement(received=True))

    return receive


def _plain(value: Any) -> Response[bytes]:
    return ReadyAnswer(msgspec.json.encode(value), 200, None)
