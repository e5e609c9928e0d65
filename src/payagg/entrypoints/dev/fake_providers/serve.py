"""An application on a loopback port of its own, inside the caller's event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from litestar.types import ASGIApp
from uvicorn.server import ServerState

STOP_SECONDS = 1


@asynccontextmanager
async def serve_asgi(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """Serves `app` on loopback; yields its base URL. Port 0 = a free one.

    It ends with the answers that are under way. Uvicorn's own server looks every 0.1 s whether it may, and hundreds of
    tests would wait for that.
    """
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none", proxy_headers=False)
    config.load()
    state = ServerState()

    def connection() -> asyncio.Protocol:
        return config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", port, backlog=512)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for one in list(state.connections):
            one.shutdown()
        if state.tasks:
            _, late = await asyncio.wait(state.tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
