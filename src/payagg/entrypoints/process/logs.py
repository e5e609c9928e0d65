"""Logs: one JSON object a line, or words at a terminal, with what is bound to the request. A last filter removes what
must never be written."""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO

import msgspec
import structlog

from payagg.application.counters import count
from payagg.entrypoints.process.log_writer import LogWriter

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
