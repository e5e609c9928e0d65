"""A server without any of our cures, so that the attacks can be seen to succeed: Uvicorn as it comes, on that port."""

import sys
from typing import Any

import msgspec
import uvicorn

LARGE = b"x" * 300_000


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Believes every header, unquotes cookies one quote at a time, reads every body whole and every number in it, and
    answers whoever asks."""
    cookie = dict(scope["headers"]).get(b"cookie", b"")
    while rb"\"" in cookie:
        cookie = cookie.replace(rb"\"", b"'", 1)
    body, more = b"", scope["method"] == "POST"
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    status, answer = 200, b'{"data":{"reference":"PAY-20250131-AAAAAA"}}'
    if scope["path"].endswith("/initiate") and b"authorization" not in dict(scope["headers"]):
        status = 401
    elif scope["path"] == "/metrics":
        answer = b"payagg_requests_total 1"
    elif scope["path"] == "/openapi.json":
        answer = LARGE
    elif body:
        try:
            msgspec.json.decode(body)
        except msgspec.DecodeError:
            status = 400
    length = (b"content-length", b"%d" % len(answer))
    await send({"type": "http.response.start", "status": status, "headers": [length]})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(
        app, port=int(sys.argv[1]), http="httptools", lifespan="off", log_level="critical", timeout_keep_alive=75
    )
