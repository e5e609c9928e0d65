"""The product on its embedded Postgres, which is killed under it."""

import os
import signal
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from lab.kit.processes import postmaster
from payagg.adapters.postgres.embedded.server import EmbeddedPostgres
from tests.support.processes import children, is_ready, payagg, serving, wait_until, wait_until_two_answer


@pytest.mark.release
@pytest.mark.error_lines("the embedded Postgres ended; starting it again")
# The second kill may come before the restart after the first has seen it answer.
@pytest.mark.error_lines("the embedded Postgres did not start", optional=True)
def test_a_server_whose_embedded_postgres_is_killed_answers_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    made = payagg("doctor", PAYAGG_STATE_DIR=str(state)).stdout
    assert f"Making a Postgres database in {state}/postgres" in made
    with serving(None, "--workers", "2", PAYAGG_STATE_DIR=str(state)) as (process, origin):
        # One that was still starting would end, as is right, and its supervisor would log that.
        wait_until_two_answer(process, origin)
        wait_until(
            lambda: any(psutil.Process(child).nice() != psutil.Process().nice() for child in children(process.pid))
        )
        for _ in range(2):
            killed = postmaster(state / "postgres")
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            wait_until(partial(is_another_ready, state, killed, origin))
            with httpx.Client(base_url=f"{origin}/api/v1", trust_env=False) as client:
                # The pool's connections are all lost: each call makes one of its own, as often as need be.
                wait_until(partial(is_unknown, client, "PAY-20250101-ABCDEF"))
    assert postmaster(state / "postgres") is None
    EmbeddedPostgres(state).destroy()


def is_another_ready(state: Path, killed: int, origin: str) -> bool:
    return is_ready(int(origin.rpartition(":")[2])) and postmaster(state / "postgres") != killed


def is_unknown(client: httpx.Client, reference: str) -> bool:
    return client.get(f"/public/payments/{reference}").status_code == 404
