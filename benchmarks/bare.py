"""The limit of `steps`: the statements of an initiation and of a read behind one ASGI function on our server.

`python -m benchmarks.bare PORT` answers those requests of `benchmarks.calls`, and 200 to anything else. What ours costs
beyond it is Litestar's routes, the guard, limits, checks, the use case and the log; the rest is the server, the driver
and Python.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
import uvloop

from benchmarks import seed
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.system import SystemEntropy
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment
from payagg.domain.values import Environment
from payagg.entrypoints.process.http_server import http_server, listen
from payagg.entrypoints.process.server import settle_memory


class Order(msgspec.Struct, rename="camel"):
    amount: int
    idempotency_key: str


async def serve(port: int) -> None:
    store, entropy = (
        PostgresStore(os.environ["PAYAGG_DATABASE_URL"], pool_size=10, pgbouncer=False),
        SystemEntropy("PAY"),
    )
    businesses = {f"Bearer {seed.secret(n)}".encode(): f"biz_bench_{n}" for n in range(1, seed.BUSINESSES + 1)}
    orders, answers = msgspec.json.Decoder(Order), msgspec.json.Encoder()
    environment, begun = Environment.SANDBOX, datetime.now(UTC)
    template = Payment.initiate(
        reference=entropy.reference(begun), business_id="biz", environment=environment, amount=100, now=begun
    )

    async def add(scope: Any, receive: Any) -> Payment:
        order, now = orders.decode((await receive())["body"]), datetime.now(UTC)
        business = businesses[dict(scope["headers"])[b"authorization"]]
        own = {"reference": entropy.reference(now), "business_id": business, "idempotency_key": order.idempotency_key}
        return (await store.add_payment(with_changes(template, **own, amount=order.amount, created_at=now)))[0]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        path, is_new = scope["path"], scope["method"] == "POST"
        found = None
        if is_new:
            found = await add(scope, receive)
        elif path.startswith("/api/v1/payments/"):
            found = await store.find_payment(path.rpartition("/")[2])
        shown = {"reference": found.reference, "status": found.status, "amount": found.amount} if found else None
        body = answers.encode({"success": True, "data": shown})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 201 if is_new else 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    listener = listen("127.0.0.1", port)
    settle_memory()
    await http_server(app, entropy.hex).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
