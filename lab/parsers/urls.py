"""The fuzz target of URLs."""

from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

import httpx
import urllib3

from lab.parsers.target import FuzzTarget, text_of
from payagg.adapters.webhooks.sender import HEADERS, _parse_url
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.values import URL_MAX, ascii_url, parse_url


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
)
