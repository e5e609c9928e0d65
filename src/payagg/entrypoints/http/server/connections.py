"""All connections of a server: how many there may be, and which are given up."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import structlog
from uvicorn.server import ServerState

from payagg.application.telemetry import count
from payagg.entrypoints.http.server.client_address import Address, counted_as, parse_address
from payagg.entrypoints.setting_kinds import Networks

CROWDED = 0.8  # of the connections that there may be: from there on an idle one is kept for a moment only
CROWDED_KEEP_ALIVE = 5
WATCH_SECONDS = 1.0
UNREAD_SECONDS = 15.0  # over which an answer's rate is taken
UNREAD_RATE = 1000  # bytes a second that a client must read of its answers; the slowest mobile network carries tenfold
UNREAD_MAX = 128 * 1024 * 1024  # bytes unread of all clients; as many times as they are more, the rate is higher
_log = structlog.get_logger("payagg.http")


class OpenConnections(ServerState):
    """The server is closing or not. A connection over `most` in all, or over `per_address` of a client that is no
    `proxies`' member, is closed before it is read: descriptors stay for the database and for deliveries."""

    is_closing = False
    most = per_address = 1_000_000
    unread_seconds = UNREAD_SECONDS
    unread_max = UNREAD_MAX
    unread_rate = float(UNREAD_RATE)  # as of the last look at all connections
    watch_seconds = WATCH_SECONDS
    proxies: Networks = ()

    def __init__(self, new_id: Callable[[int], str]) -> None:
        super().__init__()
        self.new_id = new_id
        self._by_address: Counter[str] = Counter()
        self._refused = 0  # since the last line about it
        self._refused_line = 0.0

    def admit(self, peer: str) -> bool:
        if len(self.connections) >= self.most:
            return False
        address = parse_address(peer)
        client = counted_as(address)
        is_full = any(self._by_address[name] >= self.per_address * times for name, times in client)
        if is_full and not self._is_proxy(address):
            return False
        self._by_address.update(name for name, _ in client)
        return True

    def leave(self, peer: str) -> None:
        for name, _ in counted_as(parse_address(peer)):
            self._by_address[name] -= 1
            if not self._by_address[name]:
                del self._by_address[name]

    def refuse(self, address: str, now: float) -> None:
        """Counts a connection that was not admitted. A line a second at most, as they may come by thousands."""
        count("connections_refused")
        self._refused += 1
        if now - self._refused_line >= 1.0 or not self._refused_line:
            _log.warning("connections refused", client=address, refused=self._refused, open=len(self.connections))
            self._refused, self._refused_line = 0, now

    @property
    def is_crowded(self) -> bool:
        return len(self.connections) >= self.most * CROWDED

    async def watch(self) -> None:
        """Looks at every connection again and again, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.watch_seconds)
            connections: Any = list(self.connections)
            held = 0
            for connection in connections:
                try:
                    connection.look(loop.time())
                    held += connection.transport.held
                except Exception:  # noqa: BLE001 - logged whole; the others are looked at all the same
                    _log.exception("a connection could not be looked at")
            self.unread_rate = UNREAD_RATE * max(1.0, held / self.unread_max)

    def _is_proxy(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self.proxies)
