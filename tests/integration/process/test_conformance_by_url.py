"""The harness against services that it knows by URL alone: the command, the pytest plugin.

The service is the product in memory, and where it is broken a replay is answered as a new payment.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from payagg_testing.memory import MemoryStore

from payagg.adapters.providers.provider_b import client
from payagg.entrypoints.dev.fake_providers import serve_asgi
from payagg.entrypoints.http.app import create_app
from tests.support.harness import harness
from tests.support.in_process import InProcess
from tests.support.machine import ROOT

pytestmark = pytest.mark.release
BRIEF = ["--histories", "20", "--actions", "12", "--kinds", "1", "--seed", "1"]


@dataclass(frozen=True)
class Served:
    """The product at a URL, with the bearer tokens of two businesses and of an administrator."""

    url: str
    admin: str
    merchants: dict[str, str]  # by business

    @property
    def options(self) -> list[str]:
        """Of `payagg-testing run`."""
        owners = [("--merchant-token", token, "--business", id) for id, token in self.merchants.items()]
        return ["--url", self.url, "--admin-token", self.admin, *(word for own in owners for word in own)]


@contextmanager
def served(*, is_broken: bool = False) -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    world = InProcess(MemoryStore(), run)
    app = create_app(world.services)

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        async def changed(message: Any) -> None:
            if is_broken and scope["path"].endswith("/initiate") and message.get("status") == 200:
                message["status"] = 201
            await send(message)

        await app(scope, receive, changed)

    serving = serve_asgi(broken)
    known = world.target()
    merchants = {one.business_id: one.token or "" for one in known.merchants}
    url = f"{run(serving.__aenter__())}/api/v1"
    try:
        yield Served(url, known.admin_token or "", merchants)
    finally:
        run(serving.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


def test_a_counterexample_is_a_story_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    with served(is_broken=True) as one:
        status, told = harness(capsys, "run", *one.options, *BRIEF, "--machine", "idempotency")
    assert status == 1
    for words in ("BROKEN", "expected: ", "came:     "):
        assert words in told
    for secret in (one.admin, *one.merchants.values()):
        assert secret not in told
    with served() as sound:
        assert harness(capsys, "run", *sound.options, *BRIEF, "--machine", "idempotency")[0] == 0


def test_a_charge_at_a_played_provider_is_judged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "naira_text", str)  # so the popup is opened with kobo, where it takes naira
    with served() as one:
        played = ("--provider-b", "provider_b", "--machine", "settlement-b")
        status, told = harness(capsys, "run", *one.options, *BRIEF, *played)
    assert status == 1
    for words in (
        "was asked for 500000 kobo",
        "Search again with --machine settlement-b --seed 1.",
        "What stays there: a fake account of provider_b",
    ):
        assert words in told


PLUGIN_TEST = "def test_our_service_keeps_the_interface(payagg_check):\n    payagg_check()\n"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "payagg_testing.pytest_plugin", "-p", "no:cacheprovider")


def plugin_run(folder: Path, options: list[str], *more: str) -> str:
    (folder / "test_ours.py").write_text(PLUGIN_TEST)
    given = [option.replace("--", "--payagg-") if option.startswith("--") else option for option in options]
    # `memory` is made by tests/support.
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [*PYTEST, "--payagg-histories", "3", "--payagg-seed", "1", *given, *more]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def test_the_pytest_plugin_runs_over_a_store_in_this_process(tmp_path: Path) -> None:
    assert "8 passed" in plugin_run(tmp_path, ["--over", "memory"])


def test_the_pytest_plugin_fails_with_the_story(tmp_path: Path) -> None:
    with served(is_broken=True) as one:
        told = plugin_run(tmp_path, one.options, "-k", "idempotency")
    for words in ("1 failed", "expected: "):
        assert words in told
