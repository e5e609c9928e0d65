"""What Acme would answer, and the events that it sends."""

import hmac
from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromPath
from litestar.types import ASGIApp
from payagg_testing.provider_faults import Faulty

from payagg.entrypoints.dev.fake_providers.book import Book, FakeCharge, Outgoing
from payagg.entrypoints.dev.fake_providers.steering import application, json

KEYS = {"test": "ak_test_canary", "live": "ak_live_canary"}
SECRETS = {"test": "whsec_test_canary", "live": "whsec_live_canary"}
HEADER = "x-acme-signature"


def credentials(base_url: str) -> dict[str, str]:
    modes = {"sandbox": "test", "live": "live"}
    return {
        f"{prefix}{name}": value
        for prefix, mode in modes.items()
        for name, value in (("Key", KEYS[mode]), ("EventSecret", SECRETS[mode]), ("BaseUrl", base_url))
    }


@dataclass
class FakeAcme:
    book: Book = field(default_factory=Book)

    def pay(self, reference: str, fees: int = 0) -> None:
        charge = self.book.charges[reference]
        charge.status, charge.fees = "paid", fees
        self.book.emit(self.event(charge))

    def decline(self, reference: str) -> None:
        charge = self.book.charges[reference]
        charge.status, charge.reason = "declined", "Declined"
        self.book.emit(self.event(charge))

    def told(self, charge: FakeCharge) -> dict[str, Any]:
        view = self.book.view_of(charge)
        told = {name: getattr(view, name) for name in ("reference", "mode", "amount", "currency", "reason", "fees")}
        return {"state": view.status, **told}

    def signature(self, body: bytes, mode: str) -> str:
        return hmac.new(SECRETS[mode].encode(), body, "sha256").hexdigest()

    def event(self, charge: FakeCharge) -> Outgoing:
        body = msgspec.json.encode(self.told(charge))
        return Outgoing(charge.mode, body, {HEADER: self.signature(body, charge.mode)})


def fake_acme(fake: FakeAcme) -> ASGIApp:
    """The ASGI application over `fake`."""
    book = fake.book

    @post("/charges", status_code=200)
    async def start(request: Request[Any, Any, Any]) -> Response[bytes]:
        key = request.headers["authorization"].removeprefix("Bearer ")
        wish = msgspec.json.decode(await request.body())
        if wish["reference"] in book.charges:
            return json({"error": "duplicate"}, 409)
        mode = "live" if key == KEYS["live"] else "test"
        id, reference = book.ids(), wish["reference"]
        book.charges[reference] = FakeCharge(reference, wish["amount"], "NGN", mode, id, "open", key)
        return json({"pay_url": f"{request.base_url}pay/{id}"})

    @get("/charges/{reference:str}")
    async def shown(reference: FromPath[str]) -> Response[bytes]:
        charge = book.charges.get(reference)
        return json({"error": "unknown"}, 404) if charge is None else json(fake.told(charge))

    refused_key = (401, b'{"error":"key"}')
    return Faulty(application([start, shown]), book, lambda path: path.startswith("/charges"), refused_key)
