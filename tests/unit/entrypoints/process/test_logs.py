"""The last sieve of the logs, and lines on their way to a reader who stands still, comes back, or goes away."""

import io
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from select import PIPE_BUF
from typing import Any, TextIO

import pytest
import structlog

from payagg.application import telemetry
from payagg.entrypoints.process.logs import HIDDEN, PAUSE_SECONDS, LogWriter, configure_logs, scrub

LINE = "x" * 99
PATIENCE = 20  # seconds


def test_what_looks_like_a_secret_or_a_card_is_hidden_at_any_depth() -> None:
    keys = ("ssk_live_" + "ab" * 24, "sk_test_abcdef", "whsec_" + "A" * 44, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln")
    for secret in (*keys, "4242424242424242", "4242 4242 4242 4242", "5061-0000-0000-0000-006"):
        assert scrub({"a": [f"before {secret} after"]}) == {"a": [f"before {HIDDEN} after"]}
    assert scrub(4242424242424242) == HIDDEN
    ids = ("PAY-20250101-123456", "evt_01a1fb379ba43c4f387306b45bd684cd", "spk_live_" + "ab" * 16)
    for kept in (*ids, "2025-01-01T00:00:00.000000Z", 150_000, True, None, 1.5):
        assert scrub(kept) == kept


@contextmanager
def logging_to(stream: TextIO, **more: Any) -> Iterator[None]:
    """All is written at the end, and nothing of it stays configured."""
    lines = configure_logs(stream, **more)
    try:
        yield
    finally:
        lines.close()
        structlog.contextvars.clear_contextvars()
        structlog.reset_defaults()
        logging.getLogger().handlers = []
        telemetry.counts.clear()


def test_both_kinds_of_loggers_write_one_json_line_with_what_is_bound_or_of_what_cannot_be_formatted() -> None:
    with logging_to(stream := io.StringIO()):
        structlog.contextvars.bind_contextvars(request_id="r1", reference="PAY-20250101-ABCDEF")
        structlog.get_logger("test_logs.ours").info("moved", key="ssk_sand_" + "0" * 48)
        logging.getLogger("test_logs.other").warning("card %s", "4242424242424242")
        logging.getLogger("test_logs.wrong").warning("%d", "one")
    ours, other, wrong = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (ours["event"], ours["level"], ours["request_id"], ours["key"]) == ("moved", "info", "r1", HIDDEN)
    assert ours["reference"] == other["reference"] == "PAY-20250101-ABCDEF"
    assert other["event"] == f"card {HIDDEN}"
    assert (wrong["level"], wrong["logger"], "TypeError" in wrong["exception"]) == ("error", "test_logs.wrong", True)


def test_the_line_of_a_request_hides_what_a_caller_chose_and_reads_as_the_others_do() -> None:
    with logging_to(stream := io.StringIO()):
        structlog.contextvars.bind_contextvars(request_id="4242424242424242")
        lines = structlog.get_config()["logger_factory"]()
        fields = {"method": "GET", "status": 200, "ms": 1.5}
        lines.request(fields | {"request_id": "0a" * 12, "subject": "key_" + "0" * 32})
        for secret in ("4242424242424242", "ssk_" + "0" * 20, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"):
            lines.request(fields | {"request_id": secret, "subject": secret})
        structlog.get_logger("test_logs.requests").info("another")
    shown, *requests, another = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (shown["request_id"], shown["subject"]) == ("0a" * 12, "key_" + "0" * 32)
    assert [(line["request_id"], line["subject"]) for line in requests] == [(HIDDEN, HIDDEN)] * 3
    request = requests[0]
    assert (request["event"], request["level"], request["method"], request["status"]) == ("request", "info", "GET", 200)
    assert datetime.fromisoformat(request["timestamp"]) <= datetime.fromisoformat(another["timestamp"])
    assert another["request_id"] == HIDDEN


def test_a_person_at_a_terminal_reads_words_and_still_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("NO_COLOR", "1")
    with logging_to(stream := Terminal()):
        log = structlog.get_logger("test_logs.terminal")
        log.info("moved", reference="PAY-20250101-ABCDEF", key="ssk_sand_" + "0" * 48)
        logging.getLogger("test_logs.another").warning("card %s", "4242424242424242")
    ours, other = stream.getvalue().splitlines()
    for words in ("moved", "reference=PAY-20250101-ABCDEF", f"key={HIDDEN}"):
        assert words in ours
    assert f"card {HIDDEN}" in other
    assert "{" not in ours


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
        log = structlog.get_logger("test_logs.dropped")
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
            structlog.get_logger("test_logs.gone").info(LINE)
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
