"""Sends a request on to the cell that has what it asks for, and returns that cell's response. Pure ASGI, between the
edge and the routes; only there where cells are set."""

import asyncio
import hmac
from typing import Any

import httpx
import msgspec
import structlog

from payagg.application.ports.outside import Unavailable
from payagg.application.telemetry import count
from payagg.domain.errors import ErrorCode, Refusal, invalid, misdirected_refusal
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.http.api.provider_events import BODY_MAX as EVENT_MAX
from payagg.entrypoints.http.server.client_address import address_of, counted_as
from payagg.entrypoints.http.server.errors import refusal_envelope, try_later
from payagg.entrypoints.http.server.middleware import ASGIApp
from payagg.entrypoints.http.server.rate_limits import RATES, Limits
from payagg.entrypoints.http.server.wire import REQUEST_ID, envelope
from payagg.extensions.cells.among_cells import AmongCells, among_cells
from payagg.extensions.cells.client import or_away
from payagg.extensions.cells.places import By, Destination, business_context

BODY_MAX = 64 * 1024  # what a route of one business takes
OK, INVALID, UNAUTHORIZED, FORBIDDEN, MISSING, MISDIRECTED = 200, 400, 401, 403, 404, 421
PROOF = b"x-payagg-cell-secret"
# RFC 9110, 7.6.1; the length is told anew.
ONE_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade", b"content-length",
})  # fmt: skip
NOT_SENT = ONE_HOP | {PROOF, b"x-forwarded-for", b"x-request-id", b"accept-encoding", b"expect"}
# The edge of this cell writes its own.
NOT_ANSWERED = ONE_HOP | {
    b"date", b"x-payagg-cell", b"x-request-id", b"x-content-type-options", b"referrer-policy",
    b"strict-transport-security", b"access-control-allow-origin", b"access-control-expose-headers", b"vary",
}  # fmt: skip
# By what of a request, the statuses beside 421 by which a cell says that it may not have it,
LOOKED_UP: dict[By, set[int]] = {
    By.KEY: {UNAUTHORIZED, FORBIDDEN, MISSING},
    By.BUSINESS: {FORBIDDEN, MISSING},
    By.REFERENCE: {MISSING},
    By.EVENT: set(),
}
# or one that a business gets whose keys left meanwhile; and those by which the home cell asks others, and where.
NO_KEY = b'"NO_SANDBOX_KEY"'
ASKED: dict[By, tuple[str, set[int]]] = {
    By.KEY: ("keys", {UNAUTHORIZED}),
    By.BUSINESS: ("businesses", {FORBIDDEN, MISSING}),
}

_log = structlog.get_logger("payagg.forwarding")


def forwarding(app: ASGIApp, core: Services, limits: Limits) -> ASGIApp:
    among = among_cells(core)
    return app if among is None else Forwarding(app, core, among, limits)


class Forwarding:
    """Every cell follows its own forwarding records. The home cell, where what no map of the front names arrives, asks
    the others as well. What a cell was sent by another one it does not send on: it names the cell that has it."""

    def __init__(self, app: Any, services: Services, among: AmongCells, limits: Limits) -> None:
        self._app, self._services, self._among, self._limits = app, services, among, limits

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_sent_on = self._is_sent_on(scope)
        place = business_context(scope["method"], scope["path"], scope["headers"])
        is_home = self._among.cells.is_home and not is_sent_on
        if place.by is By.CHOICE and is_home:
            answering = self._choose(scope, receive, send, place)
        elif place.by is By.OWN_LIST and is_home:
            answering = self._list(scope, receive, send)
        elif place.by in LOOKED_UP:
            answering = self._try_here(scope, receive, send, place, is_sent_on=is_sent_on)
        else:
            answering = self._app(scope, receive, send)
        try:
            await answering
        except Refusal as refusal:
            await _say(refusal_envelope(refusal), scope, receive, send)
        except Unavailable as error:
            _log.warning("service unavailable", reason=str(error))
            chance = self._services.entropy.chance()
            await _say(refusal_envelope(try_later(chance)), scope, receive, send)

    def _is_sent_on(self, scope: Any) -> bool:
        """Whether another cell sent it, which says by a proof who the client is."""
        told = dict(scope["headers"])
        if not hmac.compare_digest(told.get(PROOF, b""), self._among.secret.encode()):
            return False
        if b"x-forwarded-for" in told:
            scope["client"] = (told[b"x-forwarded-for"].decode("latin-1"), 0)
        return True

    async def _choose(self, scope: Any, receive: Any, send: Any, place: Destination) -> None:
        if place.name not in self._among.cells.origins:
            raise invalid("X-Payagg-Cell", f"Must be one of {', '.join(self._among.cells.origins)}.")
        if place.name == self._among.cells.own:
            await self._app(scope, receive, send)
        else:
            await self._send_on(scope, Body(receive), send, place.name)

    async def _try_here(self, scope: Any, receive: Any, send: Any, place: Destination, *, is_sent_on: bool) -> None:
        body = Body(receive, EVENT_MAX if place.by is By.EVENT else BODY_MAX)
        answer = Answer(send)
        await self._app(scope, body, answer)
        if not answer.kept:
            return
        cell = await self._cell_of(scope, place, answer, is_sent_on=is_sent_on)
        if cell is None or cell == self._among.cells.own:
            await answer.let_go()
        elif is_sent_on:
            raise misdirected_refusal(cell, f"The cell {cell} has this now.")
        elif cell not in self._among.cells.others:
            raise Unavailable(f"the cell {cell} is none of the cells")
        else:
            await self._send_on(scope, body, send, cell)

    async def _cell_of(self, scope: Any, place: Destination, answer: "Answer", *, is_sent_on: bool) -> str | None:
        """The cell that has what this one may not have; None where its answer stands. Raises Unavailable for what is on
        its way."""
        if answer.status == MISDIRECTED:
            named = {name.lower(): value for name, value in answer.kept[0]["headers"]}
            return str(named.get(b"x-payagg-cell", b"").decode("latin-1"))
        if answer.status not in LOOKED_UP[place.by] and not (place.by is By.BUSINESS and NO_KEY in answer.body):
            return None
        cell = await self._among.cell_of(place)
        collection, statuses = ASKED.get(place.by, ("", set()))
        if cell is not None or answer.status not in statuses or is_sent_on or not self._among.cells.is_home:
            return cell
        client = counted_as(self._client_of(scope))
        self._limits.guesses.ensure_open(client)
        cell = await self._among.others.find(f"{collection}/{place.name}")
        if cell is None:
            await self._limits.guesses.hit(client)
        return cell

    async def _send_on(self, scope: Any, body: "Body", send: Any, cell: str) -> None:
        answer = await self._ask(scope, cell, await body.whole())
        scope.pop(RATES, None)  # the other cell's limits are told
        told = [(name.lower(), value) for name, value in answer.headers.raw]
        headers = [(name, value) for name, value in told if name not in NOT_ANSWERED]
        headers.append((b"content-length", b"%d" % len(answer.content)))
        await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": answer.content})

    async def _ask(self, scope: Any, cell: str, body: bytes) -> httpx.Response:
        """Raises Unavailable."""
        headers = [header for header in scope["headers"] if header[0] not in NOT_SENT]
        headers += [(PROOF, self._among.secret.encode()), (b"x-request-id", scope[REQUEST_ID].encode())]
        client = self._client_of(scope)
        if client is not None:
            headers.append((b"x-forwarded-for", str(client).encode()))
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        count("requests_handed_on", cell)
        return await self._among.others.forward(cell, scope["method"], target, headers, body)

    def _client_of(self, scope: Any) -> Any:
        peer = scope.get("client")
        return address_of(peer[0], scope["headers"], self._services.settings.trusted_proxies) if peer else None

    async def _list(self, scope: Any, receive: Any, send: Any) -> None:
        """The businesses of one user in every cell. A header names the cells that are away, whose own are left out."""
        own, body = Answer(send, {OK}), Body(receive)
        await self._app(scope, body, own)
        if not own.kept:
            return
        sent = await body.whole()
        names = list(self._among.cells.others)
        answers = await asyncio.gather(*(or_away(self._ask(scope, name, sent)) for name in names))
        found, away = _businesses(own.body), list[str]()
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, httpx.Response) and answer.status_code == OK:
                found |= _businesses(answer.content)
            else:
                away.append(name)
        headers = {"X-Payagg-Cells-Away": ", ".join(away)} if away else None
        await _say(envelope({"businesses": [found[id] for id in sorted(found)]}, headers=headers), scope, receive, send)


class Body:
    """A receive channel that keeps what went through it, up to `most` bytes, and can be read to its end."""

    def __init__(self, receive: Any, most: int = BODY_MAX) -> None:
        self._receive, self._most = receive, most
        self._kept = bytearray()
        self._is_whole = False

    async def __call__(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            if len(self._kept) <= self._most:
                self._kept += message.get("body", b"")
            self._is_whole = not message.get("more_body", False)
        return message

    async def whole(self) -> bytes:
        """Raises PAYLOAD_TOO_LARGE."""
        while not self._is_whole and len(self._kept) <= self._most:
            await self()
        if len(self._kept) > self._most:
            raise Refusal(ErrorCode.PAYLOAD_TOO_LARGE)
        return bytes(self._kept)


class Answer:
    """A send channel that keeps an answer of one of `statuses`, until it is let go, and passes every other one on."""

    def __init__(
        self,
        send: Any,
        statuses: frozenset[int] | set[int] = frozenset({INVALID, UNAUTHORIZED, FORBIDDEN, MISSING, MISDIRECTED}),
    ) -> None:
        self._send, self._statuses = send, statuses
        self.kept = list[Any]()
        self.status = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        if self.status in self._statuses:
            self.kept.append(message)
        else:
            await self._send(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.kept)

    async def let_go(self) -> None:
        for message in self.kept:
            await self._send(message)


def _businesses(body: bytes) -> dict[str, Any]:
    return {business["id"]: business for business in msgspec.json.decode(body)["data"]["businesses"]}


async def _say(answer: Any, scope: Any, receive: Any, send: Any) -> None:
    await answer.to_asgi_response()(scope, receive, send)
