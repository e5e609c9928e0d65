"""The sending side of one connection: it notices a client that reads too slowly, and keeps little for it."""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from typing import Any

FEW_BYTES = 4 * 1024  # that the kernel may still hold of a closed connection


class AnswerTransport:
    """A transport that knows what its client has not read. `hang_up` decides how a connection is closed."""

    def __init__(self, transport: asyncio.Transport, hang_up: Callable[[], None]) -> None:
        self._transport = transport
        self._hang_up = hang_up
        self._written = 0
        self._mark: tuple[float, int, int] | None = None  # when, what was read by then, what there was to read
        self.is_half_closed = False
        self.held = 0  # bytes that were unread when last looked at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self.is_closing():
            return  # nobody gets it; where asyncio's own drops it, uvloop's raises
        self._written += len(data)
        self._transport.write(data)

    def close(self) -> None:
        self._hang_up()

    def is_closing(self) -> bool:
        return self.is_half_closed or self._transport.is_closing()

    def finish(self) -> None:
        """Closes once the rest is with the kernel, which sends it whatever becomes of this process."""
        self._transport.close()

    def forget(self) -> None:
        """Lets go of the connection, which is lost: else only the collector would free it, with its last request."""
        self._hang_up = self._transport.close

    def half_close(self) -> None:
        """Ends our side alone: the client reads to the end, and what it has not read stays in sight."""
        self.is_half_closed = True
        self._transport.write_eof()

    def reset(self) -> None:
        """Drops what is unread, the kernel's part of it too."""
        if self._transport.is_closing():
            return
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    @property
    def unread(self) -> int:
        """Bytes that the client's machine has not acknowledged, this process's and the kernel's."""
        held = self._transport.get_write_buffer_size()
        try:
            descriptor = self._transport.get_extra_info("socket").fileno()
            (queued,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4))
        except OSError:  # closed, or a system that does not tell
            queued = 0
        return held + int(queued)

    def is_too_slow(self, now: float, seconds: float, rate: float) -> bool:
        """Whether part of what waited for the client still waits after `seconds`, and it read less than `rate` bytes a
        second meanwhile. Asked again and again."""
        if not self._written:
            return False
        unread = self.held = self.unread
        if not unread:
            self._written, self._mark = 0, None
            return False
        read = self._written - unread
        if self._mark is not None:
            since, before, owed = self._mark
            if now - since < seconds:
                return False
            if read < owed and read - before < rate * (now - since):
                return True
        self._mark = now, read, self._written
        return False
