"""The requests of a payment's way from the merchant's server to its end, as bytes for `benchmarks.load`."""

import json
import time
from itertools import count
from typing import Any

from benchmarks import seed
from benchmarks.load import Connection, Reply

API = "/api/v1"
ZIPPED = b"\x1f\x8b"  # how gzip begins
CARD = "4242 4242 4242 4242"  # the simulator says SUCCESS when first asked
ORDER = (
    b'{"amount":150000,"customerEmail":"payer@example.com","customerName":"Ada Obi",'
    b'"callbackUrl":"https://shop.example/thanks","metadata":{"order":"{order}"},"idempotencyKey":"{order}"}'
)
BEGUN = time.time_ns()
_orders, _payers = count(1), count(1)


def payer() -> dict[str, str]:
    """The header a trusted proxy adds, with an address that nobody had before."""
    number = next(_payers)
    return {"X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}


def request(
    method: str, path: str, headers: dict[str, str] | None = None, *, bearer: str = "", body: Any = None
) -> bytes:
    """The bytes of one request; `body` is JSON, or bytes that are sent as they are."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {bearer}"] if bearer else []
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if method != "GET":
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode() + content


def initiate(business: int) -> bytes:
    """An order that nobody made before."""
    order = b"order-%d-%d" % (BEGUN, next(_orders))
    body = ORDER.replace(b"{order}", order)
    return request("POST", f"{API}/payments/initiate", bearer=seed.secret(business), body=body)


def read(business: int, reference: str) -> bytes:
    return request("GET", f"{API}/payments/{reference}", bearer=seed.secret(business))


def page(reference: str) -> bytes:
    """As browsers ask: the answer is a ZIPPED page."""
    return request("GET", f"/checkout/{reference}", payer() | {"Accept-Encoding": "gzip, deflate, br"})


def detail(reference: str) -> bytes:
    return request("GET", f"{API}/public/payments/{reference}", payer())


def gateways(reference: str) -> bytes:
    return request("GET", f"{API}/public/payments/{reference}/gateways", payer())


def process(reference: str) -> bytes:
    body = {"gatewaySlug": "sandbox", "cardNumber": CARD}
    return request("POST", f"{API}/public/payments/{reference}/process", payer(), body=body)


def verify(reference: str) -> bytes:
    return request("GET", f"{API}/public/payments/{reference}/verify", payer())


async def whole(connection: Connection, business: int) -> Reply:
    """One payment from initiate to the merchant's reading of its end: the hosted page asks once more after the answer
    that settled it. The reply to `process`; raises WrongAnswer."""
    made = (await connection.exchange(initiate(business))).checked(201)
    reference = made.data()["reference"]
    for sent, word in ((page, ZIPPED), (detail, b'"INITIATED"'), (gateways, b'"sandbox"')):
        (await connection.exchange(sent(reference))).checked(200, word)
    processed = (await connection.exchange(process(reference))).checked(200, b'"PENDING"')
    for last in (verify(reference), verify(reference), read(business, reference)):
        (await connection.exchange(last)).checked(200, b'"SUCCESS"')
    return processed
