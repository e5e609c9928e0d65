"""A server without any of our cures, so that the attacks can be seen to succeed: Uvicorn as it comes, on that port."""

import sys
from typing import Any

import msgspec
import uvicorn

LARGE = b"x" * 300_000


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Reads every body whole and every number in it, and answers whoever asks."""
    body, more = b"", scope["method"] == "POST"
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if body:
        msgspec.json.decode(body)
    answer = LARGE if scope["path"] == "/openapi.json" else b"{}"
    length = (b"content-length", b"%d" % len(answer))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(
        app, port=int(sys.argv[1]), http="httptools", lifespan="off", log_level="critical", timeout_keep_alive=75
    )
