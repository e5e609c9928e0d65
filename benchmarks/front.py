"""The front without sockets: bytes into the connection's protocol, through the application, bytes out, over a store that
answers from memory. Run as a program in the folder of any commit, for `benchmarks.instructions`, it counts itself."""

import asyncio
import ctypes
import json
import mmap
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import uvloop
from payagg_testing.builders import a_delivery, a_gateway, an_attempt, the_built_in

from payagg.adapters.system import DatabaseClock
from payagg.adapters.webhooks.http1 import HttpConnection
from payagg.adapters.webhooks.sender import HttpSender
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.webhooks import ClaimedDelivery
from payagg.domain.api_key import ApiKey
from payagg.domain.attempt import AttemptState
from payagg.domain.business import Business, BusinessStatus, KycStatus
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment, Status
from payagg.domain.payment_search import PaymentCursor
from payagg.domain.values import Environment
from payagg.domain.webhook import secret_context
from payagg.entrypoints.dev.fake_providers import FakeCharge, FakePaystack
from payagg.entrypoints.http.app import create_app
from payagg.entrypoints.http.server.uvicorn_protocol import ServerProtocol
from payagg.entrypoints.process.http_server import http_server
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import settle_memory
from tests.support.assembly import SETTINGS, services_over

WARM, REQUESTS = 50, 100
BUSINESS, KEY = (f"{prefix}_{0:032x}" for prefix in ("biz", "key"))  # as long as real ones
SECRET, PROVIDER, PROVIDER_KEY = "0" * 48, "provider_a", "sk_test_bench"
PLENTY = 1_000_000_000  # no limit is met
API = "/api/v1"
HEAD = f"Host: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\nAuthorization: Bearer ssk_sand_{SECRET}\r\n"
JSON = {"Content-Type": "application/json"}
# As the quick start sends it.
ORDER = '{{"amount": 150000, "customerEmail": "ada@example.com", "idempotencyKey": "quick-start-{}"}}'

try:
    from payagg_testing.memory.store import MemoryStore, MemoryTransaction
except ModuleNotFoundError:  # a commit that is compared with, from before the store moved to the harness
    from payagg.adapters.memory.store import MemoryStore, MemoryTransaction  # type: ignore

# In whatever module a commit has it.
SEARCH: Any = type(MemoryStore().transaction.payment_search)


class FirstPage(SEARCH):  # type: ignore[misc]
    async def page(self, *asked: Any) -> tuple[list[Payment], PaymentCursor | None]:
        found = list(islice(self.state.payments.values(), asked[-1]))
        return found, PaymentCursor.of(found[-1])


class FlatStore(MemoryStore):
    """What a request costs does not grow with the payments before it: no snapshot is taken, no list sorted."""

    def __init__(self) -> None:
        super().__init__()
        self.transaction = replace(self.transaction, payment_search=FirstPage(self.state))

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[MemoryTransaction]:
        yield self.transaction

    async def find_payment(self, reference: str, cached: KeyHolder | None = None) -> Payment | None:
        return self.state.payments.get(reference)

    async def add_payment(self, payment: Payment, cached: KeyHolder | None = None) -> tuple[Payment, bool]:
        self.state.payments[payment.reference] = payment
        return payment, True


@dataclass
class Wire(asyncio.Transport):
    """One client's connection, which ends nowhere."""

    sent: list[bytes] = field(default_factory=list)
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        names = {"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 8000)}
        super().__init__({**names, "socket": socket.socket()})  # which says of itself that nobody has hung up

    def write(self, data: Any) -> None:
        self.sent.append(data)
        self.answered.set()

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        raise RuntimeError(f"the connection was closed after {self.sent!r}")

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Receiver(asyncio.Transport):
    """A merchant's server that takes every event at once."""

    def __init__(self, connection: HttpConnection) -> None:
        super().__init__()
        self._connection = connection

    def write(self, _: Any) -> None:
        self._connection.data_received(b"HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 0\r\n\r\n")

    def is_closing(self) -> bool:
        return False


class NearSender(HttpSender):
    async def _connect(self, *_: Any, **__: Any) -> HttpConnection:
        self._ends = socket.socketpair()  # of which neither ever has something to read
        connection = HttpConnection(self._ends[0])
        connection.connection_made(Receiver(connection))
        return connection


async def _now() -> datetime:
    return datetime.now(UTC)


class Front:
    """A server's protocol with one merchant's key, asked one request after the other."""

    def __init__(self) -> None:
        names = (name for name in SETTINGS.__dataclass_fields__ if name.endswith(("_limit", "_bytes_a_day")))
        limits: Any = dict.fromkeys(names, PLENTY)
        store, now = FlatStore(), datetime.now(UTC)
        services = services_over(
            store, replace(SETTINGS, **limits), DatabaseClock(_now), sender=NearSender(allow_loopback=True)
        )
        key, _ = ApiKey.generate(
            id=KEY,
            business_id=BUSINESS,
            environment=Environment.SANDBOX,
            name="Bench",
            secret_hex=SECRET,
            public_hex="0" * 32,
            now=now,
        )
        store.state.businesses[BUSINESS] = Business(BUSINESS, "Bench", BusinessStatus.ACTIVE, KycStatus.APPROVED, now)
        store.state.api_keys[key.id] = key
        provider, credentials = a_gateway(PROVIDER), json.dumps({"sandboxSecretKey": PROVIDER_KEY}).encode()
        provider = replace(provider, credentials=services.vault.seal(credentials, provider.id))
        store.state.gateways = {gateway.id: gateway for gateway in (the_built_in(), provider)}
        self._state, self._dispatcher = store.state, services.dispatcher
        secret = services.vault.seal(b"k" * 32, secret_context("whe_1"))
        self._delivery = ClaimedDelivery(a_delivery(), b"x" * 600, "https://shop.example/hooks", (("whe_1", secret),))
        server = http_server(create_app(services), services.payments.entropy.hex)
        server.config.load()
        self._wire = Wire()
        self._protocol = ServerProtocol(config=server.config, server_state=server.server_state, app_state={})
        self._protocol.connection_made(self._wire)

    def hand_over(self, reference: str) -> None:
        """To the provider, as `process` does, without the provider's answer."""
        payment = self._state.payments[reference]
        attempt = an_attempt(payment, state=AttemptState.HANDED_OFF, now=payment.created_at)
        self._state.attempts[reference, 1] = attempt
        self._state.payments[reference] = with_changes(payment, status=Status.PENDING, gateway=PROVIDER, sequence=1)

    async def ask(self, request: bytes, status: int) -> bytes:
        wire, state = self._wire, self._state
        wire.answered.clear()
        state.events.clear()  # both are searched for each event
        state.inbox.clear()
        self._protocol.data_received(request)
        await wire.answered.wait()
        answer = b"".join(wire.sent)
        wire.sent.clear()
        if not answer.startswith(b"HTTP/1.1 %d " % status):
            raise SystemExit(f"not the answer that is measured: {answer!r}")
        return answer

    async def deliver(self, number: int) -> None:
        """Signs and sends so many claimed deliveries at once, without the statements that claim and record them."""
        await asyncio.wait([self._dispatcher._begin(self._delivery) for _ in range(number)])
        if any(not result.sent.is_accepted for result in self._dispatcher._results):
            raise SystemExit(f"a delivery was not taken: {self._dispatcher._results[0].sent}")
        self._dispatcher._results.clear()

    async def ask_all(self, requests: Sequence[bytes], status: int) -> list[bytes]:
        return [await self.ask(request, status) for request in requests]


def _post(path: str, body: str, headers: Mapping[str, str] = JSON) -> bytes:
    more = {**headers, "Content-Length": len(body.encode())}
    lines = "".join(f"{name}: {value}\r\n" for name, value in more.items())
    return f"POST {API}{path} HTTP/1.1\r\n{HEAD}{lines}\r\n{body}".encode()


def initiations(first: int, number: int) -> list[bytes]:
    return [_post("/payments/initiate", ORDER.format(n)) for n in range(first, first + number)]


def gets(*paths: str) -> list[bytes]:
    return [f"GET {API}{path} HTTP/1.1\r\n{HEAD}\r\n".encode() for path in paths]


def pages(references: Sequence[str]) -> list[bytes]:
    head = f"{HEAD}Accept-Encoding: gzip, deflate, br\r\n"
    return [f"GET /checkout/{reference} HTTP/1.1\r\n{head}\r\n".encode() for reference in references]


def charges(references: Sequence[str]) -> list[bytes]:
    body = '{"gatewaySlug": "sandbox", "cardNumber": "4242 4242 4242 4242"}'
    return [_post(f"/public/payments/{reference}/process", body) for reference in references]


def news(references: Sequence[str]) -> list[bytes]:
    """Of the provider, signed: each is paid."""
    fake = FakePaystack(header=f"x-{PROVIDER}-signature")
    charges = (FakeCharge(one, 150_000, "NGN", "test", 1, "success", PROVIDER_KEY, "a@b.io") for one in references)
    sent = [fake.event(charge) for charge in charges]
    return [_post(f"/webhooks/{PROVIDER}/sandbox", one.body.decode(), one.headers) for one in sent]


def reference_in(answer: bytes) -> str:
    return answer.split(b'"reference":"', 1)[1][:19].decode()


class Callgrind:
    """Counts in this process under `valgrind --tool=callgrind --instr-atstart=no`, between `start` and `stop`.

    Its client requests are a few instructions without effect that valgrind knows (callgrind.h has them as macros):
    callgrind_control would have to be waited for, and waiting is counted too.
    """

    # mov rax, rdi; xor edx, edx; rol rdi, 3; rol rdi, 13; rol rdi, 61; rol rdi, 51; xchg rbx, rbx; ret
    CODE = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db c3")
    DUMP, START, STOP = 0x4354_0003, 0x4354_0004, 0x4354_0005

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._memory.write(self.CODE)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))

    def start(self) -> None:
        self._ask(self.START)

    def stop(self, name: str) -> None:
        """Everything since `start` goes into a file of its own."""
        text = ctypes.create_string_buffer(name.encode())
        self._ask(self.DUMP, ctypes.addressof(text))
        self._ask(self.STOP)

    def _ask(self, request: int, argument: int = 0) -> None:
        words = (ctypes.c_uint64 * 6)(request, argument)
        self._call(ctypes.addressof(words))


class Cpu:
    """Prints the CPU time between `start` and `stop`, in ns."""

    def start(self) -> None:
        self._began = time.process_time_ns()

    def stop(self, name: str) -> None:
        print(name, time.process_time_ns() - self._began, flush=True)


async def counted(counter: Callgrind | Cpu) -> None:
    front = Front()
    number = WARM + REQUESTS
    own, theirs = [
        [reference_in(answer) for answer in await front.ask_all(initiations(first, number), 201)]
        for first in (0, number)
    ]
    for reference in theirs:
        front.hand_over(reference)
    public = [f"/public/payments/{reference}" for reference in own]
    steps = (
        ("initiate", initiations(2 * number, number), 201),
        ("read", gets(*(f"/payments/{reference}" for reference in own)), 200),
        ("list", gets("/payments?limit=20") * number, 200),
        ("public", gets(*public), 200),
        ("page", pages(own), 200),
        ("options", gets(*(f"{path}/gateways" for path in public)), 200),
        ("process", charges(own), 200),
        ("verify", gets(*(f"{path}/verify" for path in public)), 200),
        ("event", news(theirs), 200),
    )
    settle_memory()  # a round of the collector would be counted where it happens to fall
    for name, requests, status in steps:
        await front.ask_all(requests[:WARM], status)
        counter.start()
        await front.ask_all(requests[WARM:], status)
        counter.stop(name)
    await front.deliver(WARM)
    counter.start()
    await front.deliver(REQUESTS)
    counter.stop("delivery")


def main(way: str) -> None:
    with open(os.devnull, "w") as log, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        configure_logs(log)
        runner.run(counted(Callgrind() if way == "callgrind" else Cpu()))


if __name__ == "__main__":
    main(sys.argv[1])
