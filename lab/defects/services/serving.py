"""A service written by hand on a loopback port, in a thread of its own."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from payagg_testing.conformance.inbox import Inbox

from lab.defects.services.payments import Handmade
from payagg.entrypoints.dev.fake_providers import serve_asgi


@contextmanager
def served_by_hand(made: type[Handmade]) -> Iterator[tuple[str, list[str]]]:
    """Its base URL, and the options of `payagg-testing run` that open it."""
    app, ready, loop = made(Inbox()), threading.Event(), asyncio.new_event_loop()
    stop, urls = asyncio.Event(), list[str]()

    async def serve() -> None:
        async with serve_asgi(app) as url:
            urls.append(f"{url}/api/v1")
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    options = ["--url", urls[0], "--admin-token", app.admin]
    for business, token in list(app.businesses.items())[:2]:
        options += ["--merchant-token", token, "--business", business]
    try:
        yield urls[0], options
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
