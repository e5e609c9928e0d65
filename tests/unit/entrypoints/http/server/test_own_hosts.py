"""Under which names `dev` answers."""

import asyncio
import json
from typing import Any

import pytest

from payagg.entrypoints.http.server.own_hosts import OwnHosts


def asked(*hosts: bytes) -> tuple[int, Any]:
    """Status and body of the answer to a request with these Host headers."""
    messages: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'"ours"'})

    async def send(message: Any) -> None:
        messages.append(message)

    scope = {"type": "http", "headers": [(b"host", host) for host in hosts]}
    asyncio.run(OwnHosts(app, ["Pay.Example"])(scope, None, send))
    return messages[0]["status"], json.loads(messages[1]["body"])


def test_loopback_and_the_base_urls_name_are_ours_at_any_port() -> None:
    for host in (
        *(b"127.0.0.1:8000", b"127.0.0.1", b"127.9.9.9:1", b"localhost:8000", b"LOCALHOST", b"localhost.:8000"),
        *(b"[::1]:8000", b"[::1]", b"shop.localhost:8000", b"pay.example", b"PAY.example:443", b"pay.example."),
    ):
        assert asked(host) == (200, "ours"), host


@pytest.mark.rule("access.32")
def test_any_other_name_is_refused_in_the_envelope() -> None:
    others = [
        *(b"evil.example:8000", b"evil.example", b"localhost, evil.example", b"2130706433", b"127.0.0.1.evil.example"),
        *(b"127.0.0.1.nip.io:8000", b"127.0.0.1 evil.example", b"localhost.evil.example", b"evillocalhost"),
        *(b"pay.example.evil.example", b"192.168.1.7:8000", b"0.0.0.0:8000", b"[::]:8000", b"[fe80::1]", b"[", b"\xff"),
        *(b"", b":8000", b"localhost:", b"localhost:x", b"user@localhost", b"localhost/"),
    ]
    for hosts in ((), (b"localhost", b"localhost"), (b"localhost", b"evil.example"), *((host,) for host in others)):
        status, body = asked(*hosts)
        told = (status, body["success"], body["error"]["code"], body["error"]["field"])
        assert told == (400, False, "VALIDATION_ERROR", "Host"), hosts
        assert "evil" not in json.dumps(body)
