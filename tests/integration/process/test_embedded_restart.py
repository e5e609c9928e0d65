"""The product on its embedded Postgres, which is killed under it."""

import os
import signal
from functools import partial
from pathlib import Path

import httpx
import pytest

from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from tests.support.processes import is_ready, serving, wait_until


@pytest.mark.error_lines("the embedded Postgres ended; starting it again")
# A process of `--workers` that was still starting when Postgres was killed dies, before or after it said that it was
# ready, and its supervisor starts another.
@pytest.mark.error_lines("not started", "died", "Traceback (most recent call last):", optional=True)
@pytest.mark.parametrize("arguments", [(), ("--workers", "2")])
def test_a_server_whose_embedded_postgres_is_killed_answers_again(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    state = tmp_path / "state"
    with serving(None, *arguments, PAYAGG_STATE_DIR=str(state)) as (_, origin):
        for _ in range(2):
            killed = postmaster(state)
            os.kill(killed, signal.SIGKILL)
            wait_until(partial(is_another_ready, state, killed, origin))
            with httpx.Client(base_url=f"{origin}/api/v1", trust_env=False) as client:
                # The pool's connections are all lost: each call makes one of its own, as often as need be.
                wait_until(partial(is_unknown, client, "PAY-20250101-ABCDEF"))
    assert not (state / "postgres" / "postmaster.pid").exists()
    EmbeddedPostgres(state).destroy()


def postmaster(state: Path) -> int:
    return int((state / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def is_another_ready(state: Path, killed: int, origin: str) -> bool:
    return is_ready(int(origin.rpartition(":")[2])) and postmaster(state) != killed


def is_unknown(client: httpx.Client, reference: str) -> bool:
    return client.get(f"/public/payments/{reference}").status_code == 404
