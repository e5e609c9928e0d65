"""Requests on their way through the router: what is kept of a body, how long it may take, whose headers go on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.server.client_address import SITE_TIMES, Counted, counted_as, parse_address
from payagg.entrypoints.route.messages import (
    KEPT_BYTES,
    WAITED_FOR_EACH,
    WAITED_FOR_MAX,
    Incoming,
    WaitedFor,
    receive_request,
    send_response,
)

pytestmark = pytest.mark.anyio


def a_scope(*headers: tuple[bytes, bytes], query: bytes = b"") -> dict[str, Any]:
    return {"method": "POST", "raw_path": b"/a%2Fb", "query_string": query, "headers": list(headers)}


async def incoming(
    parts: Sequence[bytes], *headers: tuple[bytes, bytes], query: bytes = b"", ends: bool = True, seconds: float = 30
) -> Incoming:
    """A body in `parts`; without its end, nothing comes any more after them."""
    left = list(parts)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left) or not ends}

    return await receive_request(a_scope(*headers, query=query), receive, "192.0.2.1", "request-1", seconds)


async def whole(request: Incoming) -> bytes:
    return b"".join([part async for part in request.stream()])


async def test_a_short_body_is_kept_whole_and_told_by_its_length() -> None:
    request = await incoming([b"one", b"two"], (b"transfer-encoding", b"chunked"), query=b"a=%20")
    assert request.is_repeatable
    assert [await whole(request), await whole(request)] == [b"onetwo"] * 2
    assert dict(request.headers)[b"content-length"] == b"6"
    assert b"transfer-encoding" not in dict(request.headers)
    assert request.target == b"/a%2Fb?a=%20"


@pytest.mark.parametrize("came", [b"", b"x" * (KEPT_BYTES + 1)], ids=["kept", "on its way"])
async def test_a_body_that_does_not_end_is_given_up(came: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        await whole(await incoming([came], (b"content-length", b"999999"), ends=False, seconds=0.05))
    assert refused.value.code is ErrorCode.VALIDATION_ERROR


async def test_headers_of_one_hop_end_here_and_the_client_stands_last() -> None:
    request = await incoming(
        [b""],
        (b"host", b"pay.example"),
        (b"connection", b"close, X-Odd"),
        (b"x-odd", b"1"),
        (b"te", b"trailers"),
        (b"x-forwarded-for", b"203.0.113.9"),
        (b"x-forwarded-for", b"198.51.100.1"),
        (b"x-request-id", b"not ours"),
        (b"authorization", b"Bearer x"),
    )
    assert request.headers == [
        (b"host", b"pay.example"),
        (b"authorization", b"Bearer x"),
        (b"x-forwarded-for", b"203.0.113.9, 198.51.100.1, 192.0.2.1"),
        (b"x-request-id", b"request-1"),
    ]


class Body(httpx.AsyncByteStream):
    """An answer's, in parts of 64 KB."""

    def __init__(self, parts: int) -> None:
        self._parts, self.is_closed = parts, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._parts):
            yield b"x" * 65_536

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(("parts", "is_waited_for"), [(4, False), (5, True)])
async def test_a_cell_is_free_before_a_client_reads_a_short_answer(parts: int, is_waited_for: bool) -> None:
    body, sent, waited, freed = Body(parts), 0, list[bool](), list[bool]()

    async def send(message: Any) -> None:
        nonlocal sent
        freed.append(body.is_closed)
        sent += len(message.get("body", b""))

    await send_response(httpx.Response(200, stream=body), send, lambda: waited.append(True))
    assert (sent, bool(waited), freed[0]) == (parts * 65_536, is_waited_for, not is_waited_for)


def client(number: int) -> Counted:
    return counted_as(parse_address(f"192.0.2.{number}"))


async def test_clients_that_keep_a_cell_waiting_have_a_share() -> None:
    waited_for = WaitedFor()
    with ExitStack() as held:
        for number in range(WAITED_FOR_MAX):
            held.enter_context(waited_for.one_of(client(number // WAITED_FOR_EACH)))
        with pytest.raises(Refusal):
            held.enter_context(waited_for.one_of(client(100)))
    for _ in range(WAITED_FOR_MAX):
        with ExitStack() as held:
            for _ in range(WAITED_FOR_EACH):
                held.enter_context(waited_for.one_of(client(1)))
            with pytest.raises(Refusal):
                held.enter_context(waited_for.one_of(client(1)))
            held.enter_context(waited_for.one_of(client(2)))


async def test_a_site_of_many_networks_leaves_room_for_others() -> None:
    waited_for = WaitedFor()
    with ExitStack() as held:
        for number in range(SITE_TIMES * WAITED_FOR_EACH):
            held.enter_context(waited_for.one_of(counted_as(parse_address(f"2001:db8:0:{number}::1"))))
        with pytest.raises(Refusal):
            held.enter_context(waited_for.one_of(counted_as(parse_address("2001:db8:0:ffff::1"))))
        held.enter_context(waited_for.one_of(counted_as(parse_address("2001:db8:1::1"))))
    with waited_for.one_of(counted_as(parse_address("2001:db8:0:ffff::1"))):
        pass
