"""`payagg cell map --follow` as a process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.ports import free_port


def test_it_follows_until_sigterm_and_says_which_cell_is_away(tmp_path: Path) -> None:
    cell = f"PAY=http://127.0.0.1:{free_port()}"
    environ = {"PATH": os.environ["PATH"], "PAYAGG_CELLS": cell, "PAYAGG_CELL_SECRET": "s" * 40}
    command = [sys.executable, "-m", "payagg", "cell", "map", "--out", str(tmp_path), "--follow"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert "its lines stay as they were" in running.stderr.readline()
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
    assert (tmp_path / "prefixes.map").read_text(encoding="utf-8") == "/PAY-[0-9]{8}-[A-Z0-9]{6}(/|$) PAY\n"
