"""That an error which a server logs is seen, by whichever of the ways that it logs it, and must be declared."""

import logging

import pytest
import structlog

from tests.support.error_lines import ErrorLog, complaints


# Declared, as the watch around each test sees what the standard library's loggers write.
@pytest.mark.error_lines("library")
def test_each_error_that_a_test_does_not_declare_is_complained_of() -> None:
    log = ErrorLog()
    with log.watching():
        structlog.get_logger().error("plain", n=1)
        structlog.get_logger().critical("critical")
        with structlog.testing.capture_logs():
            structlog.get_logger().exception("captured")
        logging.getLogger("uvicorn.error").error("library")
        structlog.get_logger().warning("a warning")
        logging.getLogger("uvicorn.error").warning("a warning")
        log.new_file().write_text('{"level":"error","event":"process"}\n{"level":"info","event":"a line"}\n')
        log.new_file().write_text("Traceback (most recent call last):\n")
    seen = log.taken()
    death = "Traceback (most recent call last):"
    assert {line.event for line in seen} == {"plain", "critical", "captured", "library", "process", death}
    assert len(complaints(seen, [])) == 6
    assert complaints(seen, [line.event for line in seen]) == []
    assert complaints([], ["stale"]) == ["declared, but never logged: stale"]
    assert log.taken() == []
