"""`python -m benchmarks.without [NAME ...] [--port PORT]`: the product's server without its worker or, with no port, the
worker of `benchmarks.worker`, after each named optimisation has been taken away.

Each is taken away from outside, by putting something plainer in the place of a part of the product.
"""

import argparse
import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
import uvloop
from litestar import MediaType, Response

from benchmarks import worker
from payagg.adapters.postgres import connections
from payagg.adapters.postgres.delivery_queue.queue import PostgresDeliveryQueue
from payagg.adapters.postgres.fast_path.batching import Batch
from payagg.adapters.webhooks import sender
from payagg.adapters.webhooks.http1 import HttpAnswer
from payagg.application import dispatcher
from payagg.application.access import Access
from payagg.application.store import DeliveryResult
from payagg.entrypoints.http import strict_json, wire
from payagg.entrypoints.process import logs, server
from payagg.entrypoints.process.http_server import listen
from payagg.entrypoints.settings import read_settings


def replace(owner: Any, name: str, other: Any) -> None:
    """Puts `other` in the place of a part of the product, which must be there."""
    getattr(owner, name)
    setattr(owner, name, other)


def nothing() -> None:
    """Takes nothing away: what it gives beside 1.00 is the noise of the machine."""


def remembered_keys() -> None:
    """No key is remembered: each is read for every request."""
    replace(Access, "_remember", lambda *_: None)


def batching() -> None:
    """Each question is a run of its own, on any connection of the pool."""
    made, most = Batch.__init__, read_settings(os.environ).pool_size

    def alone(batch: Batch[Any, Any], work: Any, *, size: int, concurrency: int) -> None:
        made(batch, work, size=1, concurrency=most)

    replace(Batch, "__init__", alone)


def by_index() -> None:
    """The server plans as it likes: five times by the values, and by scan where that looks cheaper."""
    replace(connections, "BY_INDEX", {})


def prepared() -> None:
    """No statement stays prepared, as behind PgBouncer: each is parsed and planned every time."""
    conninfo = connections.conninfo
    replace(connections, "conninfo", lambda url: conninfo(url) | {"prepare_threshold": None})


def own_loop() -> None:
    """asyncio's own loop in the place of uvloop's."""
    replace(uvloop, "new_event_loop", asyncio.new_event_loop)


def response_classes() -> None:
    """Answers are Litestar's own responses, which Litestar encodes."""

    def answer(value: Any, status: int, headers: Mapping[str, str] | None) -> Response[Any]:
        return Response(value, status_code=status, headers=headers, media_type=MediaType.JSON)

    replace(wire, "_json", answer)


def compact_json() -> None:
    """Every body takes the slow look."""
    replace(strict_json, "_is_compact", lambda _: False)


def log_lines() -> None:
    """Each log line is written and flushed by itself."""
    replace(logs, "LogWriter", structlog.WriteLogger)


def collector() -> None:
    """The collector stays as Python sets it, and looks through all that start-up made."""
    replace(server, "settle_memory", lambda: None)


def recorded_together() -> None:
    """Each delivery's result is recorded at once, by itself, as many at a time as the pool has connections."""
    finish = PostgresDeliveryQueue.finish

    async def each(queue: PostgresDeliveryQueue, results: Sequence[DeliveryResult]) -> None:
        await asyncio.gather(*(finish(queue, [result]) for result in results))

    replace(PostgresDeliveryQueue, "finish", each)
    replace(dispatcher, "GATHER_SECONDS", 0.0)


def own_sockets() -> None:
    """Deliveries go through connections of httpcore, kept as ours are; nobody checks their addresses here."""
    import httpcore

    idle: defaultdict[str, list[httpcore.AsyncHTTPConnection]] = defaultdict(list)

    async def post(_: Any, url: str, headers: Mapping[str, str], body: bytes, answered: list[HttpAnswer]) -> None:
        target = httpcore.URL(url)
        kept = idle[str(target.origin)]
        connection = kept.pop() if kept else httpcore.AsyncHTTPConnection(target.origin)
        told = {"content-type": "application/json", "user-agent": sender.USER_AGENT, "accept": "*/*", **headers}
        answer = await connection.request("POST", target, headers=list(told.items()), content=body)
        kept.append(connection)
        answered.append(HttpAnswer(answer.status, None))

    replace(sender.HttpSender, "_post", post)


OPTIMISATIONS: dict[str, Callable[[], None]] = {
    "nothing": nothing,
    "remembered-keys": remembered_keys,
    "batching": batching,
    "by-index": by_index,
    "prepared": prepared,
    "uvloop": own_loop,
    "response-classes": response_classes,
    "compact-json": compact_json,
    "log-lines": log_lines,
    "collector": collector,
    "recorded-together": recorded_together,
    "own-sockets": own_sockets,
}


def named(text: str) -> list[str]:
    """The names in a comma list; raises ValueError for one that is none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not set(names) <= set(OPTIMISATIONS):
        raise ValueError(text)
    return names


def arguments(names: Sequence[str], port: int | None = None) -> list[str]:
    """How Python is told to start this: the server on a port, or the worker."""
    return ["-m", "benchmarks.without", *names, *(["--port", str(port)] if port is not None else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(OPTIMISATIONS))
    parser.add_argument("--port", type=int)
    chosen = parser.parse_args()
    for name in chosen.names:
        OPTIMISATIONS[name]()
    if chosen.port is None:
        server.run(worker.main())
        return
    logs.configure_logs()
    listener = listen("127.0.0.1", chosen.port)
    settings = read_settings(os.environ)
    server.run(server.run_process(settings, os.environ["PAYAGG_DATABASE_URL"], listener, with_worker=False))


if __name__ == "__main__":
    main()
