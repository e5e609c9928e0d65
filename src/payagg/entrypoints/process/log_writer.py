"""Lines on their way to a stream whose reader may stand still: a pipe that is full stops whoever writes to it.
The standard library's `QueueListener` waits for it without a bound at the end, and its queue counts records, not bytes;
a descriptor that does not block would not block for every process that shares it."""

import atexit
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from select import PIPE_BUF
from typing import TextIO

import structlog

BUFFER_MAX = 4 * 1024 * 1024  # characters of the lines that wait: some 15,000 lines of requests
PAUSE_SECONDS = 0.02  # over which lines are gathered: a thread that woke for each would take the core from requests
FLUSH_SECONDS = 2.0  # at the end of the process


class LogWriter:
    """A thread of its own writes to `stream`; who logs never waits for it. What does not fit into `most` characters, or
    cannot be written, is dropped, given to `count_dropped`, and told in a line as soon as lines are written again."""

    def __init__(self, stream: TextIO, count_dropped: Callable[[int], None], most: int = BUFFER_MAX) -> None:
        self._write = _writer_to(stream)
        self._count_dropped = count_dropped
        self._most = most
        self._lines: list[str] = []
        self._size = 0  # characters of these, and of those that are being written
        self._dropped = 0  # lines, since the last line about it
        self._lock = threading.Lock()  # itself, as a condition's own way into it is written in Python
        self._changed = threading.Condition(self._lock)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def msg(self, line: str) -> None:
        size = len(line) + 1
        with self._lock:
            fits = self._size + size <= self._most
            if fits:
                self._size += size
                self._lines.append(line)
                if len(self._lines) == 1:
                    self._changed.notify()
        if not fits:
            self._drop(1)

    debug = info = warning = error = critical = exception = log = msg

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Waits so long at most until every line is written; none is written that comes later."""
        atexit.unregister(self.close)
        self._closing.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._closing.is_set())
            self._closing.wait(PAUSE_SECONDS)
            with self._changed:
                lines, self._lines = self._lines, []
            if not lines:
                return
            if self._write_all(lines):
                self._tell_dropped()

    def _write_all(self, lines: Iterable[str]) -> bool:
        """Whether any of them could be written."""
        is_any = False
        for size, count, data in _together(lines):
            try:
                self._write(data)
                is_any = True
            except OSError:  # nobody can read it any more, or the disk is full
                self._drop(count)
            with self._changed:
                self._size -= size
        return is_any

    def _drop(self, lines: int) -> None:
        self._count_dropped(lines)
        with self._changed:
            self._dropped += lines

    def _tell_dropped(self) -> None:
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            structlog.get_logger("payagg.logs").warning("log lines dropped", dropped=dropped)


def _together(lines: Iterable[str]) -> Iterator[tuple[int, int, bytes]]:
    """Characters, number and bytes of lines that one write carries: what several processes write to one pipe mixes only
    beyond PIPE_BUF bytes."""
    size, count, data = 0, 0, b""
    for line in lines:
        more = f"{line}\n".encode(errors="backslashreplace")
        if data and len(data) + len(more) > PIPE_BUF:
            yield size, count, data
            size, count, data = 0, 0, b""
        size, count, data = size + len(line) + 1, count + 1, data + more
    if data:
        yield size, count, data


def _writer_to(stream: TextIO) -> Callable[[bytes], None]:
    """Past the stream's own buffer: at its end the interpreter would wait for that, or for the lock that a thread which
    stands in a write holds on it."""
    try:
        descriptor = os.dup(stream.fileno())
    except OSError:  # it is no file

        def write_text(data: bytes) -> None:
            stream.write(data.decode())

        return write_text

    def write(data: bytes) -> None:
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:  # whoever shares it with us made it so
                threading.Event().wait(PAUSE_SECONDS)

    return write
