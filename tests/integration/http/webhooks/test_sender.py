"""One POST to a merchant: which addresses, how long, how much, and what a hostile receiver achieves (nothing)."""

import asyncio
import gc
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from weakref import WeakSet

import psutil
import pytest
import trustme

from payagg.adapters.webhooks.addresses import is_allowed
from payagg.adapters.webhooks.http1 import HttpAnswer, HttpConnection
from payagg.adapters.webhooks.resolver import Address
from payagg.adapters.webhooks.sender import HttpSender
from tests.support.receivers import Conversation, Receiver, a_receiver, listening, read_request, until

BODY = b'{"id":"evt_1"}'

PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4003::1"]
REFUSED = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.2.1",
    "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::ffff:100.64.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1",
    "2002:a00:1::", "3fff::1", "5f00::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b:2::1", "1fff::1", "4000::1", "e000::1",
    "168.63.129.16", "::ffff:168.63.129.16", "not an address",
]  # fmt: skip
# Spellings that a resolver understands and a naive check does not.
SPELLINGS = [
    *("127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "0"),
    *("[::1]", "[::ffff:127.0.0.1]", "localhost"),
]
NOT_PUBLIC = "the host has an address that is not public"


@pytest.mark.rule("webhooks.15")
def test_an_address_that_is_not_public_is_refused() -> None:
    assert [one for one in PUBLIC if not is_allowed(one, allow_loopback=False)] == []
    assert [one for one in REFUSED if is_allowed(one, allow_loopback=False)] == []
    # dev reaches loopback, and nothing else that is not public.
    loopback = {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"}
    assert [one for one in REFUSED if is_allowed(one, allow_loopback=True) and one not in loopback] == []
    assert is_allowed("127.0.0.1", allow_loopback=True)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}  # as every process of the product


@pytest.fixture
async def sender() -> AsyncIterator[HttpSender]:
    sender = HttpSender(allow_loopback=True)
    yield sender
    await sender.close()


class Resolving:
    """A resolver that gives its answers in turn, the last one for ever."""

    def __init__(self, *answers: Sequence[Address]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[Address]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


LOOPBACK: Sequence[Address] = [(socket.AF_INET, "127.0.0.1")]


async def test_every_spelling_of_this_machine_is_refused() -> None:
    async with a_receiver() as receiver:
        sender = HttpSender(allow_loopback=False)
        for host in SPELLINGS:
            sent = await sender.send(receiver.origin.replace("127.0.0.1", host), {}, BODY)
            assert (sent.status_code, sent.error) == (None, NOT_PUBLIC), host
        await sender.close()
    assert receiver.connections == 0


async def test_one_refused_address_among_public_ones_refuses_the_host() -> None:
    sender = HttpSender(allow_loopback=False, resolve=Resolving([(socket.AF_INET, "8.8.8.8"), *LOOPBACK]))
    assert (await sender.send("http://shop.example/", {}, BODY)).error == NOT_PUBLIC


async def test_an_address_where_nothing_answers_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example a forgotten AAAA record, which browsers pass over."""
    monkeypatch.setattr("payagg.adapters.webhooks.addresses.CONNECT_SECONDS", 2.0)
    async with a_receiver() as receiver:
        port = int(receiver.origin.rpartition(":")[2])
        with socket.create_server(("127.0.0.2", port), backlog=0) as full, socket.socket() as waiting:
            waiting.connect(full.getsockname())  # the kernel drops further ones while it is not accepted
            addresses = [(socket.AF_INET, "127.0.0.2"), *LOOPBACK]
            sender = HttpSender(allow_loopback=True, resolve=Resolving(addresses))
            assert (await sender.send(f"http://shop.example:{port}/", {}, BODY)).is_accepted
            await sender.close()


async def test_a_far_host_of_many_addresses_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def connect_far(dialled: socket.socket, address: tuple[str, int]) -> None:
        await asyncio.sleep(0.4)
        await connect(dialled, address)

    monkeypatch.setattr(loop, "sock_connect", connect_far)
    async with a_receiver() as receiver:
        port = int(receiver.origin.rpartition(":")[2])
        sender = HttpSender(allow_loopback=True, resolve=Resolving([*LOOPBACK] * 20))
        assert (await sender.send(f"http://shop.example:{port}/", {}, BODY)).is_accepted
        await sender.close()


async def test_a_failed_lookup_refuses() -> None:
    async def nothing(_: str) -> Sequence[Address]:
        raise socket.gaierror("no such name")

    async def late(_: str) -> Sequence[Address]:
        raise TimeoutError

    for resolve in (nothing, late, Resolving([])):
        sent = await HttpSender(allow_loopback=True, resolve=resolve).send("http://shop.example/", {}, BODY)
        assert sent.error == "the host name could not be resolved"


@pytest.mark.rule("payments.21")
async def test_an_international_address_is_called_as_browsers_call_it() -> None:
    async with a_receiver() as receiver:
        port, stub = receiver.origin.rpartition(":")[2], Resolving(LOOPBACK)
        sender = HttpSender(allow_loopback=True, resolve=stub)
        assert (await sender.send(f"http://b\u00fccher.example:{port}/\u1ecdj\u00e0?x=a|b", {}, BODY)).is_accepted
        await sender.close()
    assert stub.asked == ["xn--bcher-kva.example"]
    assert receiver.received[0].headers["host"] == f"xn--bcher-kva.example:{port}"
    assert receiver.received[0].path == "/%E1%BB%8Dj%C3%A0?x=a%7Cb"


async def test_a_name_that_changes_its_address_is_dialled_where_it_was_checked() -> None:
    """Rebinding: each connection asks once, and what it asked is what it dials."""
    async with a_receiver() as inside:
        # The second answer would pass for this test's sender, were it looked up a second time for the dialling.
        stub = Resolving([(socket.AF_INET, "192.168.0.1")], LOOPBACK)
        url = inside.origin.replace("127.0.0.1", "shop.example")
        assert (await HttpSender(allow_loopback=True, resolve=stub).send(url, {}, BODY)).error == NOT_PUBLIC
        assert (stub.asked, inside.connections) == (["shop.example"], 0)


async def test_the_request_is_a_post_of_the_stored_bytes(sender: HttpSender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with a_receiver() as receiver:
        sent = await sender.send(f"{receiver.origin}/hooks?a=b", {"webhook-id": "evt_1"}, BODY)
    assert (sent.status_code, sent.error, sent.is_accepted) == (200, None, True)
    [received] = receiver.received
    assert (received.path, received.body) == ("/hooks?a=b", BODY)
    own = {"webhook-id": "evt_1", "host": receiver.origin.removeprefix("http://")}
    assert (
        received.headers.items() >= {**own, "content-type": "application/json", "accept-encoding": "identity"}.items()
    )
    assert not {"cookie", "authorization", "traceparent"} & set(received.headers)


def url_at(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


async def test_a_kept_connection_that_has_closed_is_replaced(sender: HttpSender) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        await writer.drain()
        await read_request(reader)  # takes the next request and closes without a word

    async with listening(once) as port:
        for _ in range(3):
            assert (await sender.send(url_at(port), {}, BODY)).is_accepted


def connections() -> list[HttpConnection]:
    return [one for one in gc.get_objects() if isinstance(one, HttpConnection)]


ANSWERS = [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"no HTTP", b""]


@pytest.mark.parametrize("answer", ANSWERS, ids=["answered", "not understood", "broken"])
async def test_nothing_is_kept_of_a_connection_that_has_ended(sender: HttpSender, answer: bytes) -> None:
    """The collector comes rarely, and until then each would keep its parser and, with TLS, 63 KB."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await read_request(reader) is not None
        writer.write(answer)

    gc.collect()
    others = WeakSet(connections())  # of servers that other tests of this process share
    gc.disable()
    try:
        async with listening(once) as port:
            assert (await sender.send(url_at(port), {}, BODY)).is_accepted is answer.startswith(b"HTTP")
            await until(lambda: others.issuperset(connections()), seconds=5)
    finally:
        gc.enable()


async def test_a_408_is_the_answer_on_a_new_connection_alone(sender: HttpSender) -> None:
    """RFC 9110, 15.5.9: a server that tired of waiting says so, and a request on its way may be repeated."""
    async with a_receiver(answer=lambda _: (408, "Connection: close\r\n")) as receiver:
        assert (await sender.send(receiver.origin, {}, BODY)).status_code == 408
    assert receiver.connections == 1
    received: list[bytes] = []

    async def tired(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = OK if not received else NO
        while (request := await read_request(reader)) is not None:
            received.append(request.body)
            writer.write(answer)
            answer = IDLE_TOO_LONG

    async with listening(tired) as port:
        assert (await sender.send(url_at(port), {}, b"one")).is_accepted
        assert (await sender.send(url_at(port), {}, b"two")).status_code == 503
    assert received == [b"one", b"two", b"two"]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NO = b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n"
IDLE_TOO_LONG = b"HTTP/1.1 408 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("comes_with_the_answer", [True, False])
@pytest.mark.parametrize("stray", [OK, b"H", IDLE_TOO_LONG], ids=["200", "one byte", "408"])
async def test_what_nobody_asked_for_is_not_the_answer_to_the_next_event(
    sender: HttpSender, stray: bytes, comes_with_the_answer: bool
) -> None:
    received: list[bytes] = []
    idle, strayed = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await read_request(reader)
        assert first is not None
        received.append(first.body)
        if len(received) > 1:
            writer.write(NO)
        elif comes_with_the_answer:
            writer.write(OK + stray)
        else:
            writer.write(OK)
            await idle.wait()
            writer.write(stray)
        await writer.drain()
        if stray is IDLE_TOO_LONG:
            writer.write_eof()
        strayed.set()
        if (again := await read_request(reader)) is not None:
            received.append(again.body + b" on the same connection")

    async with listening(talk) as port:
        assert (await sender.send(url_at(port), {}, b"one")).is_accepted
        idle.set()
        await strayed.wait()
        assert (await sender.send(url_at(port), {}, b"two")).status_code == 503
    assert received == [b"one", b"two"]


@pytest.mark.parametrize("taken_in", [False, True], ids=["in the kernel", "taken in"])
@pytest.mark.parametrize("stray", [b"H", b""], ids=["a byte", "the end"])
async def test_what_comes_while_nothing_is_asked_is_seen_wherever_it_waits(stray: bytes, taken_in: bool) -> None:
    ours, theirs = socket.socketpair()
    _, connection = await asyncio.get_running_loop().create_connection(partial(HttpConnection, ours), sock=ours)
    answered: list[HttpAnswer] = []
    theirs.send(OK)
    assert await connection.exchange(b"request", answered)
    assert answered == [HttpAnswer(200, None)]
    assert connection.is_usable
    if stray:
        theirs.send(stray)
    else:
        theirs.close()
    if taken_in:  # once the loop has run
        for _ in range(3):
            await asyncio.sleep(0)
    assert not connection.is_usable
    if taken_in and not stray:
        with pytest.raises(ConnectionResetError):
            await connection.exchange(b"request", [])
    connection.close()
    theirs.close()


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "byte by byte"])
@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 299 X\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", True),
        (b"HTTP/1.1 103 X\r\nLink: </a>\r\n\r\n" * 3 + b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000, False),
    ],
)
async def test_any_answer_ends_one_attempt_and_decides_if_its_connection_is_reused(
    sender: HttpSender, answer: bytes, is_kept: bool, at_once: bool
) -> None:
    connections = 0
    received: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while (request := await read_request(reader)) is not None:
            received.append(request.body)
            for part in [answer] if at_once else [answer[n : n + 1] for n in range(400)] + [answer[400:]]:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)

    async with listening(talk) as port:
        for body in (b"one", b"two"):
            sent = await sender.send(url_at(port), {}, body)
            assert sent.is_accepted, sent
    assert received == [b"one", b"two"]
    assert connections == (1 if is_kept else 2)


async def test_what_cannot_be_sent_as_one_request_is_a_failure_and_never_raises(sender: HttpSender) -> None:
    async with a_receiver() as receiver:
        for path, value in (("/a b", ""), ("/", "evt_1\r\nx-admin: yes"), ("/", "\u00e4")):
            sent = await sender.send(receiver.origin + path, {"webhook-id": value}, BODY)
            assert (sent.status_code, receiver.received) == (None, [])
    for url in ("ftp://shop.example/", "http://", "nonsense", "http://a..b/"):
        assert not (await sender.send(url, {}, BODY)).is_accepted, url


@pytest.mark.rule("webhooks.16")
async def test_a_redirect_is_a_failure_and_is_not_followed(sender: HttpSender) -> None:
    async with a_receiver() as target, a_receiver() as receiver:
        receiver.answer = lambda _: (307, f"Location: {target.origin}/\r\n")
        sent = await sender.send(receiver.origin, {}, BODY)
    assert (sent.status_code, sent.is_accepted, sent.error) == (307, False, "answered 307")
    assert target.connections == 0


async def test_retry_after_is_read(sender: HttpSender) -> None:
    told = {"120": 120, " 7 ": 7, "-1": None, "soon": None, "Wed, 21 Oct 2015 07:28:00 GMT": 0}
    values = iter(told)
    async with a_receiver(answer=lambda _: (429, f"Retry-After: {next(values)}\r\n")) as receiver:
        for value, seconds in told.items():
            sent = await sender.send(receiver.origin, {}, BODY)
            wanted = None if seconds is None else timedelta(seconds=seconds)
            assert (sent.status_code, sent.retry_after) == (429, wanted), value


def saying(head: bytes, *, again: bytes = b"", pause: float = 0) -> Conversation:
    """Answers a request with `head`, then with `again` for ever, a pause after each; with neither it closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(head)
        await writer.drain()
        while again or pause:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(pause)

    return talk


BOMB = gzip.compress(b"\x00" * 10_000_000)
OK_GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
OK_HEAD, LENGTH = b"HTTP/1.1 200 OK\r\n", b"Content-Length: 100000\r\n\r\n"
ENDLESS, CHUNK = b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"
HINTS = b"HTTP/1.1 103 X\r\nLink: </a>\r\n\r\n" * 50
TOO_LARGE, UNKNOWN = "the answer was too large", "the answer was not understood"
close_at_once = saying(b"")


@pytest.mark.parametrize(
    ("talk", "status", "error"),
    [
        pytest.param(saying(b"", pause=60), None, "no answer in time", id="silent"),
        pytest.param(saying(OK_HEAD + b"X: ", again=b"a", pause=0.05), None, "no answer in time", id="head in drops"),
        pytest.param(saying(OK_HEAD + LENGTH, again=b"a", pause=0.05), 200, None, id="body in drops"),
        pytest.param(saying(ENDLESS, again=CHUNK), 500, "answered 500", id="endless body"),
        pytest.param(saying(OK_GZIP + BOMB), 200, None, id="bomb"),
        pytest.param(saying(OK_HEAD, again=b"X-Y: " + b"v" * 50 + b"\r\n"), None, TOO_LARGE, id="endless headers"),
        pytest.param(saying(b"", again=HINTS), None, TOO_LARGE, id="103 for ever"),
        pytest.param(saying(b"\x00\xff garbage, not HTTP\r\n\r\n"), None, UNKNOWN, id="garbage"),
        pytest.param(saying(b"HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n", pause=60), None, UNKNOWN, id="another protocol"),
        pytest.param(close_at_once, None, "the connection broke", id="closes at once"),
        pytest.param(saying(OK_HEAD + b"\r\nok", pause=60), 200, None, id="no end"),
    ],
)
async def test_a_hostile_receiver_costs_bounded_time_and_bytes(
    talk: Conversation, status: int | None, error: str | None
) -> None:
    """The deadline is the sender's own; were it not held, the test would hang and not fail by a measured time."""
    sender = HttpSender(allow_loopback=True, deadline=1.0)
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    async with listening(talk) as port:
        sent = await sender.send(url_at(port), {}, BODY)
    await sender.close()
    assert (sent.status_code, sent.error) == (status, error)
    assert unhandled == []


async def test_tries_that_failed_leave_no_socket_behind() -> None:
    ours = psutil.Process()
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("shop.example").configure_cert(server_tls)

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client hangs up

    sender = HttpSender(allow_loopback=True, resolve=Resolving(LOOPBACK), deadline=0.3)
    async with listening(mute) as plain, listening(mute, tls=server_tls) as untrusted, listening(close_at_once) as cut:
        urls = [
            f"http://shop.example:{plain}/",  # never answers
            f"https://shop.example:{plain}/",  # never shakes hands
            f"https://shop.example:{untrusted}/",
            f"http://shop.example:{cut}/",
        ]
        before = ours.num_fds()
        for _ in range(3):
            tries = await asyncio.gather(*(sender.send(url, {}, BODY) for url in urls))
            assert not any(sent.is_accepted for sent in tries)
        await until(lambda: ours.num_fds() <= before)
    await sender.close()


@pytest.mark.parametrize(
    ("host", "certified", "is_trusted", "error"),
    [
        ("shop.example", "shop.example", True, None),
        ("shop.example.", "shop.example", True, None),
        ("shop.example", "other.example", True, "the TLS certificate was refused"),
        ("shop.example", "shop.example", False, "the TLS certificate was refused"),
    ],
    ids=["ours", "ours in full", "another name", "unknown authority"],
)
async def test_tls_is_verified_against_the_urls_name_at_the_checked_address(
    host: str, certified: str, is_trusted: bool, error: str | None
) -> None:
    authority = trustme.CA()
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(certified).configure_cert(server_tls)
    asked: list[str | None] = []
    server_tls.sni_callback = lambda _, name, __: asked.append(name)
    client_tls = ssl.create_default_context()
    if is_trusted:
        authority.configure_trust(client_tls)
    receiver = Receiver()
    sender = HttpSender(allow_loopback=True, resolve=Resolving(LOOPBACK), tls=client_tls)
    async with listening(receiver.talk, tls=server_tls) as port:
        sent = await sender.send(f"https://{host}:{port}/hooks", {}, BODY)
        await sender.close()
    assert (sent.is_accepted, sent.error) == (error is None, error)
    assert asked == ["shop.example"]
    assert [one.headers["host"] for one in receiver.received] == ([] if error else [f"{host}:{port}"])
