"""`payagg cell list` and `payagg cell map --follow` as an operator runs them."""

import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

from tests.support.ports import free_port
from tests.support.processes import environment, one_line, payagg, running

CELL_SECRET = {"PAYAGG_CELL_SECRET": "a-secret-between-the-cells-of-a-test"}
OTHER_KEY = "k1:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


def test_the_commands_need_to_know_the_cells_and_their_secret() -> None:
    assert "PAYAGG_CELLS is not set" in one_line(payagg("cell", "list"))
    assert "PAYAGG_CELL_SECRET is required" in one_line(payagg("cell", "list", PAYAGG_CELLS="PAY=http://h:9"))


def test_a_new_cell_is_compared_before_it_is_added(database_urls: list[str]) -> None:
    home_port, new_port = free_port(), free_port()
    home, new = f"PAY=http://127.0.0.1:{home_port}", f"PBX=http://127.0.0.1:{new_port}"
    both = CELL_SECRET | {"PAYAGG_CELLS": f"{home},{new}"}
    with running("serve", home_port, PAYAGG_DATABASE_URL=database_urls[0], **both):
        away = payagg("cell", "list", **both)
        assert away.returncode == 1
        assert "unreachable" in away.stdout
        settings = both | {"PAYAGG_REFERENCE_PREFIX": "PBX", "PAYAGG_DATABASE_URL": database_urls[1]}
        with running("serve", new_port, **settings, PAYAGG_ENCRYPTION_KEYS=OTHER_KEY):
            differing = payagg("cell", "list", **both)
            assert differing.returncode == 1
            assert "encryption keys missing or different: k1" in differing.stdout
        with running("serve", new_port, **settings):
            listed = payagg("cell", "list", **both)
            assert listed.returncode == 0, listed.stdout
            assert [line.split()[-1] for line in listed.stdout.splitlines()] == ["home", "same"]
            third = payagg("cell", "list", **both | {"PAYAGG_CELLS": f"{home},{new},PCX=http://127.0.0.1:9"})
            assert third.stdout.count("its PAYAGG_CELLS are PAY, PBX") == 2


def test_it_follows_until_sigterm_and_says_which_cell_is_away(tmp_path: Path) -> None:
    cell = f"PAY=http://127.0.0.1:{free_port()}"
    environ = environment(PAYAGG_CELLS=cell, **CELL_SECRET)
    command = [sys.executable, "-X", "importtime", "-m", "payagg", "cell", "map", "--out", str(tmp_path), "--follow"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as following:
        assert following.stderr is not None
        imported = list(takewhile(lambda line: "its lines stay as they were" not in line, following.stderr))
        following.send_signal(signal.SIGTERM)
        assert following.wait(30) == 0
    # The modules of a server and of a database would cost it twice what it costs itself.
    assert [line for line in imported if "litestar" in line or "sqlalchemy" in line] == []
    assert (tmp_path / "prefixes.map").read_text(encoding="utf-8") == "/PAY-[0-9]{8}-[A-Z0-9]{6}(/|$) PAY\n"
