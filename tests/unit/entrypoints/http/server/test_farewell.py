"""A request that is still under way when its process ends is answered."""

import asyncio
from typing import Any

import pytest

from payagg.entrypoints.http.server.middleware import Edge

SCOPE = {"type": "http", "method": "GET", "path": "/x", "raw_path": b"/x", "headers": [], "query_string": b""}


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_request_that_is_cancelled_is_told_to_come_again(has_begun: bool) -> None:
    sent: list[Any] = []

    async def hangs(_: Any, __: Any, send: Any) -> None:
        if has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    edge = Edge(hangs, lambda size: "0" * 2 * size, base_url="http://x", body_seconds=1)
    call = asyncio.create_task(edge(dict(SCOPE), receive, send))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert [message["status"] for message in sent if "status" in message] == [200 if has_begun else 503]
    assert call.cancelled() is has_begun
    if not has_begun:
        assert dict(sent[0]["headers"])[b"retry-after"]
        assert b"SERVICE_UNAVAILABLE" in sent[-1]["body"]
