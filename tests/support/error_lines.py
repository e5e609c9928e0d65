"""No test passes over an error that the server under test logged: a broken answer often has status 200 and looks whole.

A test that provokes errors on purpose names them; each must come, however often:

    @pytest.mark.error_lines("request failed")

With `optional=True` they may come: of a process that is killed, chance decides what it still logs.
"""

import json
import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from payagg_testing.provider_faults import BrokenOffError
from structlog.typing import FilteringBoundLogger

ERRORS = frozenset({"error", "critical"})
# The browser's driver shares this process: a page that is closed while it answers a request leaves a task behind.
DRIVER = "/playwright/_impl/"
TRACEBACK = "Traceback (most recent call last):"
_Logger: type[FilteringBoundLogger] = structlog.make_filtering_bound_logger(logging.NOTSET)


@dataclass(frozen=True)
class ErrorLine:
    """`event` is what a test declares it by, without what differs from run to run; `details` is for who reads it."""

    event: str
    details: str


class _Handler(logging.Handler):
    """What the standard library's loggers write: uvicorn's, asyncio's."""

    def __init__(self, lines: list[ErrorLine]) -> None:
        super().__init__(logging.ERROR)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        # A fake provider that breaks an answer off was told to; it is no server under test.
        if DRIVER in record.getMessage() or isinstance(cause, BrokenOffError):
            return
        event = record.getMessage().strip().partition("\n")[0]
        self._lines.append(ErrorLine(event, f"{record.name}: {self.format(record)}"))


class _LogFile:
    """What a process of its own writes: lines of JSON, and whatever killed it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def errors(self) -> Iterator[ErrorLine]:
        """Of the whole lines since the last time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        for line in whole.decode(errors="replace").splitlines():
            if line == TRACEBACK:
                yield ErrorLine(line, line)
            elif line.startswith("{"):
                told = json.loads(line)
                if told.get("level") in ERRORS:
                    yield ErrorLine(str(told["event"]).strip().partition("\n")[0], line)


class ErrorLog:
    """The error lines of every server that one test uses."""

    def __init__(self) -> None:
        self._lines: list[ErrorLine] = []
        self._files: list[_LogFile] = []
        self._folder = tempfile.TemporaryDirectory(prefix="payagg-logs-")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sees what servers in this process log, also while a test captures structlog's lines."""
        lines = self._lines

        class Logger(_Logger):  # type: ignore[misc,valid-type]  # made by a function
            def _proxy_to_logger(self, method_name: str, event: str | None = None, *args: Any, **fields: Any) -> Any:
                if method_name in ERRORS:
                    lines.append(ErrorLine(str(event), f"{event} {fields}"))
                return super()._proxy_to_logger(method_name, event, *args, **fields)

        before, handler = structlog.get_config()["wrapper_class"], _Handler(lines)
        structlog.configure(wrapper_class=Logger)
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)
            structlog.configure(wrapper_class=before)

    def new_file(self) -> Path:
        """A file for the standard error of a process that logs there."""
        path = Path(self._folder.name) / f"{len(self._files)}.log"
        self.watch(path)
        return path

    def watch(self, path: Path) -> None:
        """A process writes its log there, from now on."""
        path.unlink(missing_ok=True)
        self._files.append(_LogFile(path))

    def taken(self) -> list[ErrorLine]:
        """What was logged since the last time."""
        lines = [*self._lines, *(line for file in self._files for line in file.errors())]
        self._lines.clear()
        return lines


ERROR_LOG = ErrorLog()


def complaints(lines: Iterable[ErrorLine], declared: Iterable[str]) -> list[str]:
    """What a test must answer for: errors that it did not declare, and declared ones that never came."""
    lines, declared = list(lines), set(declared)
    unexpected = Counter(line.details for line in lines if line.event not in declared)
    found = [f"not declared, logged {count} times: {details}" for details, count in unexpected.items()]
    missing = sorted(declared - {line.event for line in lines})
    return [*found, *(f"declared, but never logged: {event}" for event in missing)]
