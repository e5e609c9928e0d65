"""Lines on their way to a reader who stands still, comes back, or goes away."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from select import PIPE_BUF
from typing import TextIO

import pytest
import structlog

from payagg.application import telemetry
from payagg.entrypoints.process.logs import PAUSE_SECONDS, LogWriter
from tests.unit.entrypoints.process.test_logs import logging_to

LINE = "x" * 99
PATIENCE = 20  # seconds


@contextmanager
def a_pipe(*, filled: bool) -> Iterator[tuple[int, TextIO]]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while filled:
            os.write(writer, b"\n" * PIPE_BUF)
    os.set_blocking(writer, True)
    with os.fdopen(writer, "w") as stream:
        yield reader, stream
        os.set_blocking(reader, False)  # whoever still writes gets rid of it
        os.close(reader)


def read(reader: int, last: str) -> list[str]:
    """The next lines that are not empty, up to one that holds `last`, which is waited for."""
    os.set_blocking(reader, False)
    text, until = b"", time.monotonic() + PATIENCE
    while time.monotonic() < until:
        lines = [line for line in text.decode().split("\n")[:-1] if line]
        if any(last in line for line in lines):
            return lines
        try:
            text += os.read(reader, 65536)
        except BlockingIOError:
            time.sleep(0.01)
    raise AssertionError(f"{last} never came")


def test_who_logs_never_waits_and_what_does_not_fit_is_dropped_and_counted() -> None:
    dropped: list[int] = []
    with a_pipe(filled=True) as (reader, stream):
        lines = LogWriter(stream, dropped.append, most=100 * (len(LINE) + 1))
        began = time.monotonic()
        for number in range(1_000):
            lines.msg(f"{number:099}")
        assert time.monotonic() - began < 1
        assert sum(dropped) == 900
        assert read(reader, f"{99:099}") == [f"{number:099}" for number in range(100)]
        lines.close()


def test_dropped_lines_are_counted_and_told_in_one_line_when_there_is_room() -> None:
    with a_pipe(filled=True) as (reader, stream), logging_to(stream):
        log = structlog.get_logger("test_log_writer.dropped")
        log.info("first")
        for _ in range(100):
            log.info(LINE, more="y" * 100_000)
        dropped = telemetry.counts["log_lines_dropped",]
        assert 0 < dropped < 100
        *kept, told = read(reader, "dropped")
        log.info("last")
        after = read(reader, "last")
    line = json.loads(told)
    assert (line["event"], line["level"], line["dropped"]) == ("log lines dropped", "warning", dropped)
    assert (len(kept), len(after)) == (101 - dropped, 1)


@pytest.mark.parametrize("filled", [True, False])
def test_the_end_waits_for_the_lines_but_not_longer_than_it_may(filled: bool) -> None:
    with a_pipe(filled=filled) as (reader, stream):
        lines = LogWriter(stream, lambda _: None)
        lines.msg("last")
        began = time.monotonic()
        lines.close(0.5)
        assert (time.monotonic() - began >= 0.5) is filled
        assert read(reader, "last") == ["last"]


def test_lines_that_nobody_can_read_any_more_are_dropped_without_a_loop() -> None:
    dropped: list[int] = []
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream, logging_to(stream, count_dropped=dropped.append):
        for _ in range(10):
            structlog.get_logger("test_log_writer.gone").info(LINE)
        time.sleep(10 * PAUSE_SECONDS)
    assert sum(dropped) == 10


def test_what_goes_out_in_one_write_is_whole_lines_that_no_other_process_parts() -> None:
    written: list[bytes] = []
    with a_pipe(filled=False) as (_, stream):
        lines = LogWriter(stream, lambda _: None)
        lines._write = written.append
        for number in range(500):
            lines.msg(f"{number} {LINE}")
        lines.msg("z" * 2 * PIPE_BUF)
        lines.close()
    assert b"".join(written).split(b"\n")[:500] == [f"{number} {LINE}".encode() for number in range(500)]
    assert all(data.endswith(b"\n") and (len(data) <= PIPE_BUF or data.count(b"\n") == 1) for data in written)
    assert len(written) < 50


def test_a_stream_that_refuses_to_wait_is_tried_again() -> None:
    with a_pipe(filled=True) as (reader, stream), closing(LogWriter(stream, lambda _: None)) as lines:
        os.set_blocking(stream.fileno(), False)
        lines.msg("late")
        time.sleep(0.1)
        assert read(reader, "late") == ["late"]
