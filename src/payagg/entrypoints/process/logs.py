"""Logs: one JSON object a line, or words at a terminal, with what is bound to the request. A last filter removes what
must never be written, and a thread writes, as the stream's reader may stand still."""

import atexit
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from select import PIPE_BUF
from typing import Any, TextIO

import msgspec
import structlog

from payagg.application.telemetry import count

BUFFER_MAX = 4 * 1024 * 1024  # characters of the lines that wait: some 15,000 lines of requests
PAUSE_SECONDS = 0.02  # over which lines are gathered: a thread that woke for each would take the core from requests
FLUSH_SECONDS = 2.0  # at the end of the process


class LogWriter:
    """A thread of its own writes to `stream`, whose reader may stand still: a pipe that is full stops whoever writes to
    it. The standard library's `QueueListener` waits for it without a bound at the end, and its queue counts records,
    not bytes; a descriptor that does not block would not block for every process that shares it. Who logs never waits.
    What does not fit into `most` characters, or cannot be written, is dropped, given to `count_dropped`, and told in a
    line as soon as lines are written again."""

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
        for size, number, data in _together(lines):
            try:
                self._write(data)
                is_any = True
            except OSError:  # nobody can read it any more, or the disk is full
                self._drop(number)
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


# What others choose of the line of a request. The rest is of closed sets and of forms of ours, which hide nothing.
_CHOSEN = ("request_id", "subject", "client")
_stamped = structlog.processors.TimeStamper(fmt=None)  # in seconds
_encode = msgspec.json.Encoder(enc_hook=repr).encode
_ID = re.compile(r"(?:key_)?[0-9a-f]{20,64}")  # of ours: too long for a card number
# Keys, signing secrets and tokens by their form; 13 to 19 digits, spaced or not, may be a card number.
_HIDE = re.compile(
    r"\b(?:(?:ssk|sk)_[A-Za-z0-9_]{4,}|whsec_[A-Za-z0-9+/=]+|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)"
    r"|(?<![0-9A-Za-z_-])[0-9](?:[ -]?[0-9]){12,18}(?![0-9A-Za-z])"
)
HIDDEN = "[hidden]"


def _count_dropped(lines: int) -> None:
    count("log_lines_dropped", by=lines)


class _Lines(logging.Handler):
    def __init__(self, lines: LogWriter) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.msg(self.format(record))
        except Exception:  # noqa: BLE001 - the library's own way prints to a stream that may stand still
            structlog.get_logger("payagg.logs").exception("a line could not be written", logger=record.name)


class RequestLines(LogWriter):
    """A short way for the line of a request, which structlog's made a seventh of a read's cost. It holds what it says:
    what is bound to the request is not looked for."""

    def request(self, fields: dict[str, Any]) -> None:
        """Changes `fields`."""
        for name in _CHOSEN:
            value = fields.get(name)
            if value is not None and not _ID.fullmatch(value):
                fields[name] = _HIDE.sub(HIDDEN, value)
        fields["event"], fields["level"] = "request", "info"
        # The encoder writes an instant as the other lines have it, and faster than it can be formatted here.
        fields["timestamp"] = datetime.fromtimestamp(_stamped(None, "info", fields)["timestamp"], UTC)
        self.msg(_json(fields))


def configure_logs(
    stream: TextIO = sys.stderr, level: int = logging.INFO, count_dropped: Callable[[int], None] = _count_dropped
) -> LogWriter:
    """Structlog and the standard library's loggers both write lines to `stream`: JSON, or words on a terminal."""
    lines = (LogWriter if stream.isatty() else RequestLines)(stream, count_dropped)
    # As no-color.org has it: any value but an empty one.
    at_terminal = structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"), pad_event_to=0)
    renderer: structlog.typing.Processor = at_terminal if stream.isatty() else structlog.processors.JSONRenderer(_json)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.format_exc_info,
        _scrub,
        structlog.processors.TimeStamper("iso"),
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    handler = _Lines(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    return lines


def _json(event: Any, **_: Any) -> str:
    """One request writes one line, so the encoder counts; any other value is written as its repr."""
    try:
        return _encode(event).decode()
    except UnicodeEncodeError:  # a lone surrogate, as in a file name that is not UTF-8
        return json.dumps(event, default=str)


def _scrub(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: _sieve(value) if type(value) is str else scrub(value) for name, value in event.items()}


def scrub(value: Any) -> Any:
    """`value` with whatever looks like a secret or a card number hidden, at any depth."""
    if isinstance(value, str):
        return _sieve(value)
    if isinstance(value, dict):
        return {scrub(key): scrub(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**12:
        return HIDDEN
    return value


# Most words of a line (route, method, level) are the same in the next one.
@lru_cache(maxsize=1024)
def _sieve(text: str) -> str:
    return _HIDE.sub(HIDDEN, text)
