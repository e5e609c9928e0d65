"""The router as an ASGI application."""

import asyncio
import hmac
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import httpx
import msgspec
import structlog
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.server.client_address import address_of, counted_as
from payagg.entrypoints.http.server.cors import Origins
from payagg.entrypoints.http.server.errors import refusal_envelope
from payagg.entrypoints.http.server.places import By, business_context
from payagg.entrypoints.http.server.request_id import request_id_of
from payagg.entrypoints.http.server.wire import ReadyAnswer, envelope
from payagg.entrypoints.process.logs import REQUEST
from payagg.entrypoints.route.directory import QUESTIONS
from payagg.entrypoints.route.messages import Incoming, WaitedFor, receive_request, send_response
from payagg.entrypoints.route.metrics import REQUESTS, begin_at_zero, exposition
from payagg.entrypoints.route.proxy import CellProxy, CellUpstream, away
from payagg.entrypoints.route.upstream import CHECK_SECONDS, Unreachable
from payagg.entrypoints.settings import Settings

OK = 200
HEALTH, READINESS, METRICS = "/healthz", "/readyz", "/metrics"
OWN_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_log = structlog.get_logger("payagg.route")


class RouterApp:
    def __init__(self, settings: Settings, cells: Mapping[str, CellUpstream], new_id: Callable[[int], str]) -> None:
        self._settings = settings
        self._proxy = CellProxy(cells, settings.unknown_reference_limit)
        self._waited_for = WaitedFor()
        self._new_id = new_id
        self._origins = Origins(settings.base_url, settings.cors_origins)
        self.draining = asyncio.Event()
        begin_at_zero(cells, [by.value for by in QUESTIONS])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        started = time.monotonic()
        headers, method, status, cell = scope["headers"], scope["method"], 0, "none"
        request_id = request_id_of(headers, self._new_id)
        place = business_context(method, scope["path"], headers)

        async def send_status(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        async def say(answer: Any) -> None:
            answer.sent_headers += [(b"x-request-id", request_id.encode()), *OWN_HEADERS, *self._origins.headers(scope)]
            await answer.to_asgi_response()(scope, receive, send_status)

        try:
            own = self._own(scope["path"], headers)
            if own is not None or place.by is By.NOWHERE:
                await say(own or refusal_envelope(Refusal(ErrorCode.NOT_FOUND)))
                return
            peer = scope["client"][0] if scope.get("client") else "unknown"
            request = await receive_request(scope, receive, peer, request_id)
            if place.by is By.OWN_LIST:
                if not request.is_repeatable:  # every cell is asked
                    raise Refusal(ErrorCode.PAYLOAD_TOO_LARGE)
                await say(await self._own_list(request))
                return
            client = counted_as(address_of(peer, headers, self._settings.trusted_proxies))
            with ExitStack() as held:
                if not request.is_repeatable:
                    held.enter_context(self._waited_for.one_of(client))
                cell, response = await self._proxy.deliver(request, place, client)
                try:
                    await send_response(
                        response, send_status, lambda: held.enter_context(self._waited_for.one_of(client))
                    )
                finally:
                    await response.aclose()
        except (Refusal, httpx.HTTPError) as error:
            if status:
                raise  # part of an answer has gone: the connection breaks, so that nobody takes it for the whole
            await say(refusal_envelope(error if isinstance(error, Refusal) else away(cell)))
        finally:
            if scope["path"] not in (HEALTH, READINESS, METRICS):  # a balancer's checks would outnumber the rest
                REQUESTS.labels(cell, place.by.value, str(status)).inc()
            ms = round((time.monotonic() - started) * 1000, 1)
            _log.info(REQUEST, request_id=request_id, by=place.by.value, cell=cell, status=status, ms=ms)

    def _own(self, path: str, headers: Any) -> Any:
        """What the router answers of itself, None for everything else."""
        if path == HEALTH:
            return envelope({"status": "ok"})
        if path == READINESS:
            if self.draining.is_set():
                raise away()
            return envelope({"status": "ready"})
        if path == METRICS:
            return self._metrics(headers)
        return None

    def _metrics(self, headers: Any) -> Any:
        token = (self._settings.metrics_token or "").encode()
        presented = b"".join(value for name, value in headers if name == b"authorization")
        if not token or not hmac.compare_digest(presented, b"Bearer " + token):
            raise Refusal(ErrorCode.UNAUTHORIZED)
        return ReadyAnswer(exposition(), OK, None, CONTENT_TYPE_LATEST)

    async def _own_list(self, request: Incoming) -> Any:
        """The businesses of one user in every cell. Of a cell that is away none is shown, which a header tells; where
        nothing is left to show, the answer is that."""
        cells = self._proxy.cells
        answers = await asyncio.gather(*(_whole(cell, request) for cell in cells.values()))
        missing = [name for name, answer in zip(cells, answers, strict=True) if answer is None]
        found: dict[str, Any] = {}
        for answer in answers:
            if answer is None:
                continue
            if answer.status_code != OK:
                return ReadyAnswer(answer.content, answer.status_code, _names_of(answer))
            for business in msgspec.json.decode(answer.content)["data"]["businesses"]:
                found[business["id"]] = business
        if missing and not found:
            raise away(missing[0])
        headers = {"X-Payagg-Cells-Away": ", ".join(missing)} if missing else None
        return envelope({"businesses": [found[id] for id in sorted(found)]}, headers=headers)


async def _whole(cell: CellUpstream, request: Incoming) -> httpx.Response | None:
    """The whole answer, None where there is none, or none of use."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            response = await cell.send(request.method, request.target, request.headers, request.stream())
            await response.aread()
            await response.aclose()
    except (TimeoutError, Unreachable, httpx.HTTPError):
        return None
    return response if response.status_code < 500 else None


def _names_of(answer: httpx.Response) -> dict[str, str]:
    kept = ("www-authenticate", "retry-after", "ratelimit")
    return {name: answer.headers[name] for name in kept if name in answer.headers}
