"""Whoever takes LIVE events without naming the providers' networks is warned, by the server and by the doctor."""

import json
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support.ports import free_port
from tests.support.processes import SECRETS, is_ready, payagg, started, succeeded, wait_until
from tests.support.provider_rigs import SECRET_KEYS
from tests.support.provider_world import world_on

SANDBOX = {"sandboxSecretKey": SECRET_KEYS["test"]}
LIVE = SANDBOX | {"liveSecretKey": SECRET_KEYS["live"]}
NAME = "PAYAGG_PROVIDER_NETWORKS"
NETWORKS = {NAME: "203.0.113.0/24"}


async def set_credentials(database_url: str, folder: Path, credentials: dict[str, str]) -> None:
    async with world_on(database_url, folder) as world:
        await world.set_credentials("provider_a", credentials)
        await world.set_credentials("provider_b", {"unrelated": "x"})


def told_by_doctor(database_url: str, **settings: str) -> list[str]:
    done = succeeded(payagg("doctor", PAYAGG_DATABASE_URL=database_url, **settings))
    return [line for line in done.splitlines() if NAME in line]


def warned_by_server(database_url: str, **settings: str) -> list[list[str]]:
    port = free_port()
    arguments = ("serve", "--no-worker", "--port", str(port))
    with started(*arguments, stderr=PIPE, PAYAGG_DATABASE_URL=database_url, **settings) as process:
        wait_until(lambda: is_ready(port))
    assert process.stderr is not None
    lines = [json.loads(line) for line in process.stderr]
    return [line["gateways"] for line in lines if line["level"] == "warning" and NAME in line["event"]]


@pytest.mark.rule("limits.10")
async def test_live_credentials_without_provider_networks_are_warned_of(database_url: str, tmp_path: Path) -> None:
    await set_credentials(database_url, tmp_path, LIVE)
    (line,) = told_by_doctor(database_url, **SECRETS)
    assert line.startswith("warning")
    assert "LIVE credentials of provider_a: " in line
    assert warned_by_server(database_url) == [["provider_a"]]
    # Without the key nobody can tell LIVE from SANDBOX, and the doctor says so.
    (unsure,) = told_by_doctor(database_url)
    assert "PAYAGG_ENCRYPTION_KEYS" in unsure
    assert told_by_doctor(database_url, **SECRETS, **NETWORKS) == []
    assert warned_by_server(database_url, **NETWORKS) == []


async def test_nobody_is_warned_of_provider_networks_in_vain(database_url: str, tmp_path: Path) -> None:
    assert told_by_doctor(database_url, **SECRETS) == []
    await set_credentials(database_url, tmp_path, SANDBOX)
    assert told_by_doctor(database_url, **SECRETS) == []
