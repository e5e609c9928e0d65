"""Fuzz targets of what comes as bytes: bodies of callers, providers' events, merchants' answers."""

import asyncio
import base64
import hashlib
import hmac
import json
import math
import socket
from typing import Any

import h11
import httptools
import msgspec

from lab.parsers.target import FuzzTarget, parts_of, text_of
from payagg.adapters.providers.body_redaction import reduce_body
from payagg.adapters.providers.provider_a import webhook as paystack_events
from payagg.adapters.providers.provider_b import webhook as payaza_events
from payagg.adapters.webhooks.http1 import ANSWER_MAX, HttpAnswer, HttpConnection, NoAnswer
from payagg.application.schemas.gateways import ReorderGateways, UpdateCredentials
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.report import FaultKind, ProviderFault
from payagg.domain.values import MAX_AMOUNT, MIN_AMOUNT
from payagg.entrypoints.http.server.strict_json import DEPTH_MAX, decode

SIGNING_KEY = "the signing secret of the fuzz targets"
KINDS: tuple[type[Any], ...] = (InitiatePayment, ReorderGateways, UpdateCredentials)


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _no_constant(_: str) -> None:
    raise ValueError("no JSON")


def check_json(data: bytes) -> None:
    """What is taken is JSON as the standard library reads it, without what cannot be kept, and exactly its values."""
    for kind in KINDS:
        try:
            taken = decode(data, kind)
        except Refusal as refusal:
            assert refusal.code is ErrorCode.VALIDATION_ERROR
            assert (refusal.field or "x").isprintable()
            assert len(refusal.field or "") <= 100
            continue
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_plain, parse_constant=_no_constant)
        assert isinstance(value, dict)
        _ensure_kept(value)
        assert repr(taken) == repr(msgspec.convert(value, kind))  # 1, 1.0 and True are equal, and no such texts
        if isinstance(taken, InitiatePayment):
            assert type(taken.amount) is int
            assert MIN_AMOUNT <= taken.amount <= MAX_AMOUNT
            assert str(taken.amount).encode() in data


def _ensure_kept(value: Any, depth: int = 0) -> None:
    if isinstance(value, str):
        assert "\x00" not in value
        value.encode()
    elif isinstance(value, float):
        assert math.isfinite(value)
    elif isinstance(value, dict | list):
        assert depth < DEPTH_MAX
        for key in value if isinstance(value, dict) else ():
            _ensure_kept(key, depth)
        for inner in value.values() if isinstance(value, dict) else value:
            _ensure_kept(inner, depth + 1)


def check_provider_event(data: bytes) -> None:
    """A signature counts for the bytes that it was made of, and what is kept of an event says the same as all of it."""
    given, body = parts_of(data, 2)
    offered = text_of(given)
    digest = hmac.new(SIGNING_KEY.encode(), body, hashlib.sha512)
    in_hex, in_base64 = digest.hexdigest(), base64.b64encode(digest.digest()).decode()
    for module, genuine in ((paystack_events, (in_hex,)), (payaza_events, (in_hex, in_base64))):
        for one in genuine:
            assert module.is_signed(body, one, SIGNING_KEY)
            assert not module.is_signed(body + b" ", one, SIGNING_KEY)
            assert not module.is_signed(body, one[:-1], SIGNING_KEY)
            assert not module.is_signed(body, one, "")
        is_genuine = offered.strip().lower() == in_hex or offered.strip() in genuine
        assert module.is_signed(body, offered, SIGNING_KEY) == is_genuine
        whole, kept = _report(module, body), _report(module, reduce_body(body, module.READ))
        # What is skipped is not looked at, so of a body that is no JSON the two may see different faults.
        assert whole == kept or not _is_json(body), (whole, kept)
        assert reduce_body(reduce_body(body, module.READ), module.READ) == reduce_body(body, module.READ)


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _report(module: Any, body: bytes) -> Any:
    try:
        report = module.read_event(body)
    except ProviderFault as fault:
        assert fault.kind is FaultKind.MALFORMED
        return fault.kind
    if report is not None:
        assert all(type(amount) is int and amount >= 0 for amount in report.amounts)
        assert report.word.isascii()
    return report


class _Wire(asyncio.Transport):
    def write(self, data: Any) -> None: ...

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None: ...


def _answers(chunks: list[bytes]) -> tuple[list[HttpAnswer], str, bool]:
    """What a receiver's bytes come to: answers, the error's name, and whether the connection may be kept."""
    loop = asyncio.new_event_loop()
    ours, theirs = socket.socketpair()
    try:
        connection = HttpConnection(ours)
        connection.connection_made(_Wire())
        answered: list[HttpAnswer] = []
        asking = loop.create_task(connection.exchange(b"POST / HTTP/1.1\r\n\r\n", answered))
        loop.run_until_complete(asyncio.sleep(0))
        for chunk in chunks:
            connection.data_received(chunk)
        connection.connection_lost(None)
        try:
            return answered, "", loop.run_until_complete(asking)
        except (OSError, httptools.HttpParserError, NoAnswer) as error:
            return answered, "lost" if isinstance(error, OSError) else "broken", False
    finally:
        ours.close()
        theirs.close()
        loop.close()


def check_answer(data: bytes) -> None:
    """The same answer however it is cut into reads, and none that another parser reads otherwise."""
    whole = _answers([data] if data else [])
    for cut in {1, len(data) // 2, len(data) - 1}:
        if 0 < cut < len(data):
            assert _answers([data[:cut], data[cut:]])[:1] == whole[:1], cut
    if len(data) < 400:
        by_byte = _answers([data[at : at + 1] for at in range(len(data))])
        assert by_byte[0] == whole[0]
    answers, error, is_reusable = whole
    assert len(answers) <= 1 or error != ""
    assert all(200 <= one.status <= 999 for one in answers[:1])
    assert not is_reusable or (answers and not error)
    assert len(data) <= ANSWER_MAX or not is_reusable
    # Each parser is strict where the other is not, but no answer means two things.
    status = _by_h11(data)
    assert status is None or not answers or answers[0].status == status, (answers, status)


def _by_h11(data: bytes) -> int | None:
    """The status of the final answer that h11 reads in full, None where it finds none."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    status = None
    try:
        connection.receive_data(data)
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.EndOfMessage):
                return status
            elif event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                return None
    except h11.ProtocolError:
        return None


ORDER = (
    b'{"amount":150000,"currency":"NGN","customerEmail":"ada@example.com","customerName":"Ada \\u00e9",'
    b'"callbackUrl":"https://shop.example/x","metadata":{"a":[1,2.5,null,{"b":true}]},"idempotencyKey":"order-1001"}'
)
CHARGE = (
    b'{"event":"charge.success","data":{"id":302961,"domain":"test","status":"success","reference":'
    b'"PAY-20250131-7K2M9X","amount":150000,"currency":"NGN","customer":{"email":"ada@example.com"}}}'
)
REFUND = (
    b'{"event":"refund.processed","data":{"status":"processed","transaction_reference":"PAY-20250131-7K2M9X",'
    b'"refund_reference":"R1","amount":"50000","currency":"NGN","domain":"test"}}'
)
DISPUTE = (
    b'{"event":"charge.dispute.create","data":{"id":358,"resolution":null,"refund_amount":0,'
    b'"transaction":{"reference":"PAY-20250131-7K2M9X.2","amount":150000,"status":"success"}}}'
)
FUNDS = (
    b'{"merchant_reference":"PAY-20250131-7K2M9X","transaction_reference":"P-C-1","transaction_status":'
    b'"Funds Received","status":"Completed","amount_received":1.5E3,"request_amount":1500.00,"transaction_fee":"0",'
    b'"amount_validation":"EXACT","currency_code":"NGN"}'
)
_HEX = hmac.new(SIGNING_KEY.encode(), CHARGE, hashlib.sha512).hexdigest().encode()
TARGETS = (
    FuzzTarget(
        check_json,
        (
            ORDER,
            b'{"order":[{"gatewayId":"gw_1","displayOrder":0}]}',
            b'{"credentials":{"sandboxSecretKey":"sk_test_1"}}',
            b'{"amount":100,"amount":200}',
            b'{"amount":100,"metadata":{"a":1e308,"b":-0.0,"c":12345678901234567890123}}',
            b'{"amount":100,"metadata":{"\\ud83d\\ude00":"\\ud83d"}}',
            b'{"amount":100.0}',
            b'\xef\xbb\xbf{"amount":100}',
            b'{"amount":100,"metadata":' + b'{"a":' * 40 + b"1" + b"}" * 41,
        ),
    ),
    FuzzTarget(
        check_provider_event,
        (
            *(b"\n" + body for body in (CHARGE, REFUND, DISPUTE, FUNDS)),
            _HEX + b"\n" + CHARGE,
            _HEX.upper() + b"\n" + CHARGE,
            b" " + _HEX + b"\t\n" + CHARGE,
            b"\n[]",
            b'\n{"event":"charge.success","data":null}',
            b'\n{"event":"charge.success","event":"charge.failed","data":{}}',
            b'\n{"event":"charge.success","data":{"reference":"PAY-20250131-7K2M9X","amount":1e99}}',
            b'\n{"event":"charge.dispute.create","data":{"id":{"payer":"x"},"transaction":{"reference":"PAY-20250131-7K2M9X"}}}',
            b'\n{"event":"refund.processed","data":{"refund_reference":{"payer":"x"},"transaction_reference":"PAY-20250131-7K2M9X"}}',
        ),
    ),
    FuzzTarget(
        check_answer,
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 429 Too Many\r\nRetry-After: 120\r\nretry-after: 5\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
            b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n\r\nuntil it closes",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            b"HTTP/1.1 99 X\r\n\r\n",
            b"SSH-2.0-OpenSSH\r\n",
        ),
    ),
)
