"""Ports for servers that are told theirs before they start."""

import random
import socket

# Below those that the kernel draws for whoever asks for any (from 32768 on Linux): between our look and the server's
# start nobody is given one of these.
FIRST, LAST = 15_000, 32_000


def free_port() -> int:
    """One at which nobody listens on 127.0.0.1."""
    while True:
        port = random.SystemRandom().randrange(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
