"""That a test fails on an error which its servers log, by whichever of the ways that they log it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.machine import ROOT
from tests.support.processes import environment

UNDECLARED = """
import logging, pytest, structlog
from tests.support.error_lines import ERROR_LOG

def test_structlog(): structlog.get_logger().error("canary", n=1)
def test_captured():
    with structlog.testing.capture_logs(): structlog.get_logger().exception("canary")
def test_critical(): structlog.get_logger().critical("canary")
def test_library(): logging.getLogger("uvicorn.error").error("canary")
def test_process(): ERROR_LOG.new_file().write_text('{"level":"error","event":"canary"}\\n')
def test_death(): ERROR_LOG.new_file().write_text("Traceback (most recent call last):\\n")

@pytest.mark.error_lines("canary")
def test_stale(): pass

@pytest.mark.error_lines("canary")
def test_declared(): structlog.get_logger().error("canary")
def test_warning(): structlog.get_logger().warning("canary"), logging.getLogger("uvicorn.error").warning("canary")
"""


def test_a_test_fails_on_each_error_that_it_does_not_declare(tmp_path: Path) -> None:
    (tmp_path / "test_canaries.py").write_text(UNDECLARED)
    options = ["-q", "-n", "0", "-p", "tests.integration.conftest", "-c", str(ROOT / "pyproject.toml"), "-rA"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    failed = set(re.findall(r"^ERROR \S+::(\w+)", done.stdout, re.MULTILINE))
    named = ("structlog", "captured", "critical", "library", "process", "death", "stale")
    assert failed == {f"test_{name}" for name in named}, done.stdout + done.stderr
