"""The requests of a payment's way from the merchant's server to its end, as bytes for `benchmarks.client`."""

from benchmarks import seed
from benchmarks.client import API, Connection, Reply, payer, request

CARD = "4242 4242 4242 4242"  # the simulator says SUCCESS when first asked
SILENT_CARD = "4000 0000 0000 0119"  # and for this one nothing, ever


def initiate(business: int, order: str) -> bytes:
    body = {
        "amount": 150_000,
        "customerEmail": "payer@example.com",
        "customerName": "Ada Obi",
        "callbackUrl": "https://shop.example/thanks",
        "metadata": {"order": order},
        "idempotencyKey": order,
    }
    return request("POST", f"{API}/payments/initiate", bearer=seed.secret(business), body=body)


def read(business: int, reference: str) -> bytes:
    return request("GET", f"{API}/payments/{reference}", bearer=seed.secret(business))


def simulate(business: int, reference: str) -> bytes:
    path = f"{API}/payments/{reference}/simulate"
    return request("POST", path, bearer=seed.secret(business), body={"outcome": "SUCCESS"})


def page(reference: str) -> bytes:
    return request("GET", f"/checkout/{reference}", payer())


def detail(reference: str) -> bytes:
    return request("GET", f"{API}/public/payments/{reference}", payer())


def gateways(reference: str) -> bytes:
    return request("GET", f"{API}/public/payments/{reference}/gateways", payer())


def process(reference: str, card: str = CARD) -> bytes:
    body = {"gatewaySlug": "sandbox", "cardNumber": card}
    return request("POST", f"{API}/public/payments/{reference}/process", payer(), body=body)


def verify(reference: str) -> bytes:
    return request("GET", f"{API}/public/payments/{reference}/verify", payer())


async def whole(connection: Connection, business: int, order: str) -> dict[str, Reply]:
    """One payment from initiate to the merchant's reading of its end: the hosted page asks once more after the answer
    that settled it. Raises ValueError where a step did not answer as it must."""
    replies = {"initiate": await connection.exchange(initiate(business, order))}
    if replies["initiate"].status != 201:
        raise ValueError(f"initiate: {replies['initiate'].status}")
    reference = replies["initiate"].data()["reference"]
    for name, sent, status, word in (
        ("page", page(reference), 200, b"<html"),
        ("detail", detail(reference), 200, b'"INITIATED"'),
        ("gateways", gateways(reference), 200, b'"sandbox"'),
        ("process", process(reference), 200, b'"PENDING"'),
        ("verify", verify(reference), 200, b'"SUCCESS"'),
        ("verify again", verify(reference), 200, b'"SUCCESS"'),
        ("read", read(business, reference), 200, b'"SUCCESS"'),
    ):
        reply = replies[name] = await connection.exchange(sent)
        if reply.status != status or word not in reply.body:
            raise ValueError(f"{name}: {reply.status} {reply.body[:300]!r}")
    return replies
