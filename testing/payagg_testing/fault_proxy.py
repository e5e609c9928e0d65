"""A TCP proxy on loopback that fails as networks do: between a service and its database, a provider or a merchant.

It forwards bytes until a fault is imposed; the fault then strikes every connection, open or new. Steering is plain
method calls from the same event loop. Standard library alone.
"""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from types import TracebackType

from payagg_testing.network_faults import (
    Blackhole,
    Delay,
    Direction,
    Drip,
    DropReply,
    HalfOpen,
    NetworkFault,
    Peer,
    Reset,
    Then,
)

CHUNK = 65536
_NO_LINGER = struct.pack("ii", 1, 0)  # close() then sends RST


@dataclass(eq=False)
class _End:
    """The proxy's socket to one side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def reset(self) -> None:
        connected = self.writer.get_extra_info("socket")
        if connected is not None and connected.family != socket.AF_UNIX:
            with contextlib.suppress(OSError, ValueError):  # it is closed already; uvloop says so by a ValueError
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()


@dataclass(eq=False)
class _Finder:
    """Whether some bytes came, also in two pieces."""

    wanted: bytes
    _tail: bytes = b""

    def find(self, data: bytes) -> int | None:
        """Where in `data` they begin, negative when in an earlier piece."""
        seen = self._tail + data
        place = seen.find(self.wanted)
        before = len(self._tail)
        kept = len(self.wanted) - 1
        self._tail = seen[-kept:] if kept else b""
        return None if place < 0 else place - before


@dataclass(eq=False)
class _Link:
    """One client's connection through the proxy. `is_dead`: bytes were lost, so nothing more passes."""

    proxy: "FaultProxy"
    client: _End
    server: _End | None = None
    is_dead: bool = False
    _imposed: int = -1  # the imposition that the three below belong to
    _passed: int = 0
    _is_armed: bool = False
    _asked: _Finder = field(default_factory=lambda: _Finder(b""))
    _told: _Finder = field(default_factory=lambda: _Finder(b""))

    async def run(self) -> None:
        if isinstance(self.proxy.fault, Blackhole):
            self.proxy._strike()
            self.is_dead = True
        else:
            try:
                self.server = await self.proxy._dial()
            except OSError:
                self.client.reset()
                return
        ways = [self._forward(self.client, Direction.TO_SERVER)]
        if self.server is not None:
            ways.append(self._forward(self.server, Direction.TO_CLIENT))
        await asyncio.gather(*ways)
        if self.is_dead and self.server is not None and not self.server.writer.is_closing():
            await self.proxy._until_changed()  # a server that was not told of its client's end is still connected
        self.cut()

    async def _forward(self, source: _End, direction: Direction) -> None:
        try:
            while data := await source.reader.read(CHUNK):
                await self._pass(data, direction)
        except ConnectionError:
            if not self.is_dead:
                self.cut()
            return
        target = self._target(direction)
        if not self.is_dead and target is not None and target.writer.can_write_eof():
            with contextlib.suppress(OSError, RuntimeError):
                target.writer.write_eof()

    def _target(self, direction: Direction) -> _End | None:
        return self.server if direction is Direction.TO_SERVER else self.client

    async def _pass(self, data: bytes, direction: Direction) -> None:
        if self.is_dead:
            return
        fault = self.proxy.fault
        self._notice(fault)
        if isinstance(fault, Delay | Drip):
            await self._late(data, direction, fault)
        elif isinstance(fault, Blackhole):
            self._die()
        elif isinstance(fault, Reset) and direction is fault.direction:
            self._passed += len(data)
            if self._passed < max(fault.after, 1):
                await self._write(data, direction)
                return
            await self._write(data[: len(data) - (self._passed - fault.after)], direction)
            self._die(Then.RESET)
        elif isinstance(fault, HalfOpen) and direction is Direction.TO_CLIENT:
            self._die()
            closed = self.client if fault.closed is Peer.CLIENT else self.server
            assert closed is not None
            closed.close()
        elif isinstance(fault, DropReply):
            await self._lose_reply(data, direction, fault)
        else:
            await self._write(data, direction)

    def _notice(self, fault: NetworkFault | None) -> None:
        """Starts counting anew when another fault was imposed since."""
        if self._imposed == self.proxy._imposed:
            return
        self._imposed = self.proxy._imposed
        self._passed, self._is_armed = 0, False
        if isinstance(fault, DropReply):
            self._asked, self._told = _Finder(fault.after), _Finder(fault.at)

    async def _late(self, data: bytes, direction: Direction, fault: Delay | Drip) -> None:
        self.proxy._strike()
        size = fault.size if isinstance(fault, Drip) else len(data)
        for start in range(0, len(data), size):
            await self.proxy._pause(fault.seconds)
            if self.is_dead:
                return
            await self._write(data[start : start + size], direction)

    async def _lose_reply(self, data: bytes, direction: Direction, fault: DropReply) -> None:
        if direction is Direction.TO_SERVER:
            self._is_armed = self._is_armed or self._asked.find(data) is not None
        elif self._is_armed and (place := self._told.find(data)) is not None:
            await self._write(data[: max(place, 0)], direction)
            self._die(fault.then)
            return
        await self._write(data, direction)

    async def _write(self, data: bytes, direction: Direction) -> None:
        target = self._target(direction)
        if target is None or target.writer.is_closing() or not data:
            return
        target.writer.write(data)
        await target.writer.drain()

    def _die(self, then: Then = Then.SILENCE) -> None:
        self.is_dead = True
        self.proxy._strike()
        if then is Then.RESET:
            self.cut()

    def cut(self) -> None:
        self.is_dead = True
        self.client.reset()
        if self.server is not None:
            self.server.reset()


class FaultProxy:
    """Listens on a free port of 127.0.0.1 and forwards to `host` and `port`, or to the UNIX socket `path`.

        async with FaultProxy("127.0.0.1", 5432) as proxy:
            connect(host="127.0.0.1", port=proxy.port)
            proxy.impose(Blackhole())
            proxy.heal()

    `port`: where it listens, once entered. `struck`: how often a fault has struck since it was imposed: each piece that
    Delay and Drip hold back, and each connection that another one breaks.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, path: str | None = None) -> None:
        self._to = (host, port)
        self._path = path
        self.port = 0
        self.fault: NetworkFault | None = None
        self.struck = 0
        self._left: int | None = None
        self._imposed = 0
        self._changed = asyncio.Event()
        self._links: dict[_Link, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many connections are open, broken ones that nobody has hung up included."""
        return len(self._links)

    def impose(self, fault: NetworkFault, *, times: int | None = None) -> None:
        """Strikes every connection from now on, in place of an earlier fault; after `times` strikes no more."""
        self._change(fault, times)
        self.struck = 0

    def heal(self) -> None:
        """Forwards again. A connection that has lost bytes cannot be mended: it is reset."""
        self._change(None, None)
        for link in self._links:
            if link.is_dead:
                link.cut()

    def cut(self) -> None:
        """Resets every connection, as a router that restarts does."""
        for link in self._links:
            link.cut()

    async def __aenter__(self) -> "FaultProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._change(None, None)
        tasks = list(self._links.values())
        self.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, _End(reader, writer))
        task = asyncio.current_task()
        assert task is not None
        self._links[link] = task
        try:
            await link.run()
        except asyncio.CancelledError:
            link.cut()  # swallowed: asyncio logs a cancelled handler as an error
        finally:
            del self._links[link]

    async def _dial(self) -> _End:
        if self._path is not None:
            return _End(*await asyncio.open_unix_connection(self._path))
        return _End(*await asyncio.open_connection(*self._to))

    def _change(self, fault: NetworkFault | None, times: int | None) -> None:
        self.fault, self._left = fault, times
        self._imposed += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _strike(self) -> None:
        self.struck += 1
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.fault = None

    async def _pause(self, seconds: float) -> None:
        """Until then, or until the fault is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _until_changed(self) -> None:
        await self._changed.wait()
