"""Fuzz targets of what comes as text: URLs, searches, tokens and keys."""

import hashlib
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

import httpx
import jwt
import urllib3

from lab.parsers.target import FuzzTarget, text_of
from payagg.adapters.postgres.repositories.accounts import escape_like
from payagg.adapters.security import Tokens
from payagg.adapters.webhooks.sender import HEADERS, _parse_url
from payagg.domain.api_key import parse_secret
from payagg.domain.business import SUBJECT_MAX
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment_search import PaymentCursor
from payagg.domain.values import (
    URL_MAX,
    Environment,
    ascii_url,
    parse_instant,
    parse_reference,
    parse_url,
)

KEY = "a key of the fuzz targets, with 32 bytes or more"
TOKENS = Tokens(KEY, "HS256")
END = 4102444800  # 2100: seeds are the same bytes in each process


def check_url(data: bytes) -> None:
    """An accepted URL names one host and port, whoever of urllib, urllib3, httpx and the sender reads it."""
    text = text_of(data)
    try:
        accepted = parse_url(text, "callbackUrl")
    except Refusal as refusal:
        assert (refusal.code, refusal.field) == (ErrorCode.VALIDATION_ERROR, "callbackUrl")
        return
    assert accepted == text
    assert len(text) <= URL_MAX
    wire = ascii_url(text)
    assert wire.isascii()
    assert wire.isprintable()
    assert " " not in wire
    assert ascii_url(wire) == wire
    place, head = _parse_url(text)
    assert head.count("\r\n") == 2 + HEADERS.count("\r\n")
    assert place.scheme in ("http", "https")
    whole = urlsplit(wire)
    assert (whole.username, whole.password) == (None, None)
    by_urllib3 = urllib3.util.parse_url(wire)
    by_httpx = httpx.URL(wire)
    hosts = {_bare(one) for one in (place.host, whole.hostname, by_urllib3.host, by_httpx.raw_host.decode())}
    assert len(hosts) == 1, hosts
    default = {"http": 80, "https": 443}[place.scheme]
    ports = {place.port, by_urllib3.port or default, by_httpx.port or default}
    assert len(ports) == 1, ports
    assert unquote(wire).count("\n") == unquote(text).count("\n")


def _bare(host: str | None) -> str:
    found = (host or "").lower().strip("[]")
    return str(ip_address(found)) if ":" in found else found


def check_search(data: bytes) -> None:
    """A search is a literal part of a name, and what is told of a place is a place."""
    text = text_of(data)
    pattern = escape_like(text)
    assert _like(pattern, text), "a text is found by itself"
    for other in (text + "x", "x" + text, text[1:], text.replace("%", "x"), text.replace("_", "x")):
        assert _like(pattern, other) == (text == other), (pattern, other)
    try:
        instant = parse_instant(text, "from")
    except Refusal as refusal:
        assert (refusal.code, refusal.field) == (ErrorCode.VALIDATION_ERROR, "from")
    else:
        assert text.isascii()
        assert instant.utcoffset() == timedelta(0)
        assert parse_instant(instant.isoformat(), "from") == instant
    try:
        cursor = PaymentCursor.parse(text)
    except Refusal as refusal:
        assert (refusal.code, refusal.field) == (ErrorCode.VALIDATION_ERROR, "after")
    else:
        assert cursor.text == text
        assert parse_reference(cursor.reference) == cursor.reference


def _like(pattern: str, text: str) -> bool:
    """What SQL's LIKE says with `/` for its escape, by its definition; ours have no other wildcard left."""
    at = 0
    rest = iter(pattern)
    for letter in rest:
        assert letter not in "%_", "a wildcard is left"
        wanted = next(rest, None) if letter == "/" else letter
        assert wanted is not None, "the escape escapes nothing"
        if at >= len(text) or text[at] != wanted:
            return False
        at += 1
    return at == len(text)


SIGNED: list[str] = []  # head and body of what our key signed: any other that is read was forged


def _issued(claims: dict[str, object], key: str = KEY, **headers: object) -> bytes:
    token = jwt.encode({"exp": END, **claims}, key, algorithm="HS256", headers=dict(headers))
    if key == KEY:
        SIGNED.append(token.rpartition(".")[0])
    return token.encode()


def check_token(data: bytes) -> None:
    """Nothing passes but what was signed with our key, for a subject that can be stored."""
    text = text_of(data)
    try:
        claims = TOKENS.read(text)
    except Refusal as refusal:
        assert refusal.code is ErrorCode.UNAUTHORIZED
        assert len(text) < 16 or text not in refusal.message
    else:
        assert text.rpartition(".")[0] in SIGNED
        assert type(claims["exp"]) is int
        assert 0 < len(claims["sub"]) <= SUBJECT_MAX
        assert claims["sub"].isprintable()
    try:
        environment, digest = parse_secret(text)
    except Refusal as refusal:
        assert refusal.code is ErrorCode.INVALID_API_KEY
    else:
        infix = {"ssk_sand_": Environment.SANDBOX, "ssk_live_": Environment.LIVE}
        assert infix[text[:9]] is environment
        assert len(text) == 57
        assert set(text[9:]) <= set("0123456789abcdef")
        assert digest == hashlib.sha256(text.encode()).digest()


GOOD_TOKEN = _issued({"sub": "admin-1", "type": "admin", "role": "ADMIN"})

TARGETS = (
    FuzzTarget(
        check_url,
        (
            b"https://shop.example/hooks?a=1#b",
            b"http://127.0.0.1:80\\@evil.example/",
            b"https://user:pass@shop.example/",
            b"https://[::1]:8443/x",
            b"https://[2001:0DB8::0001]/",
            "https://b\u00fccher.example/\u00e4?q=\u20ac".encode(),
            "https://fa\u00df.example/".encode(),
            b"https://2130706433/",
            b"https://0x7f.1:00443/",
            b"https://shop.example:99999/",
            b"https://shop.example%2eevil.example/",
            b"https://shop.example./a//../b|c",
            b"HTTPS://Shop.Example",
            b"javascript://shop.example/%0aalert(1)",
            b"https://shop.example/%0d%0aX: y",
        ),
    ),
    FuzzTarget(
        check_search,
        (
            b"50%_off/",
            b"a\\b",
            b"",
            b"2025-01-31T12:00:00Z",
            b"2025-01-31t23:59:59.999999+14:00",
            b"0001-01-01T00:00:00+14:00",
            b"9999-12-31T23:59:59-23:59",
            PaymentCursor(datetime(2025, 1, 31, tzinfo=UTC), "PAY-20250131-7K2M9X").text.encode(),
        ),
    ),
    FuzzTarget(
        check_token,
        (
            GOOD_TOKEN,
            GOOD_TOKEN[:-1],
            GOOD_TOKEN.rpartition(b".")[0] + b".",
            b"eyJhbGciOiJub25lIn0." + GOOD_TOKEN.split(b".")[1] + b".",
            _issued({"sub": "admin-1"}, "another key of 32 bytes or more, that is not ours"),
            _issued({"sub": 7}),
            _issued({"sub": "a\nb"}),
            _issued({"sub": "a", "exp": 1.5}),
            _issued({"sub": "a"}, kid="../../dev/null", jku="http://127.0.0.1/"),
            b"ssk_sand_" + b"0a" * 24,
            b"ssk_live_" + b"0a" * 24 + b"\n",
            b"spk_live_" + b"0a" * 16,
        ),
    ),
)
