"""The last sieve of the logs."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TextIO

import pytest
import structlog

from payagg.application import telemetry
from payagg.entrypoints.process.logs import HIDDEN, configure_logs, scrub


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
