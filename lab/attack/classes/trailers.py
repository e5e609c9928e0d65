"""Fields behind a chunked body, which pass for headers, and heads without end."""

from contextlib import suppress

from lab.attack.target import AttackResult, Target

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
