"""Whoever takes LIVE events without naming the providers' networks is warned, by the server and by the doctor."""

import json
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from subprocess import PIPE

import pytest
from structlog.testing import capture_logs

from payagg.entrypoints.process.server import warn_of_gaps
from tests.support.assembly import with_parts
from tests.support.ports import free_port
from tests.support.processes import SECRETS, is_ready, payagg, started, succeeded, wait_until
from tests.support.provider_rigs import SECRET_KEYS
from tests.support.provider_world import World, world_on

SANDBOX = {"sandboxSecretKey": SECRET_KEYS["test"]}
LIVE = SANDBOX | {"liveSecretKey": SECRET_KEYS["live"]}
NAME = "PAYAGG_PROVIDER_NETWORKS"
NETWORKS = {NAME: "203.0.113.0/24"}


async def set_credentials(world: World, credentials: dict[str, str]) -> None:
    await world.set_credentials("provider_a", credentials)
    await world.set_credentials("provider_b", {"unrelated": "x"})


def told_by_doctor(database_url: str, **settings: str) -> list[str]:
    done = succeeded(payagg("doctor", PAYAGG_DATABASE_URL=database_url, **settings))
    return [line for line in done.splitlines() if NAME in line]


def warned_by_server(database_url: str) -> list[list[str]]:
    port = free_port()
    arguments = ("serve", "--no-worker", "--port", str(port))
    with started(*arguments, stderr=PIPE, PAYAGG_DATABASE_URL=database_url) as process:
        wait_until(lambda: is_ready(port))
    assert process.stderr is not None
    lines = [json.loads(line) for line in process.stderr]
    return [line["gateways"] for line in lines if line["level"] == "warning" and NAME in line["event"]]


@pytest.mark.rule("limits.10")
async def test_live_credentials_without_provider_networks_are_warned_of(database_url: str, tmp_path: Path) -> None:
    assert told_by_doctor(database_url, **SECRETS) == []
    async with world_on(database_url, tmp_path) as world:
        await set_credentials(world, SANDBOX)
        assert told_by_doctor(database_url, **SECRETS) == []
        await set_credentials(world, LIVE)
        settings = replace(world.services.settings, provider_networks=(ip_network(NETWORKS[NAME]),))
        with capture_logs() as warned:
            await warn_of_gaps(with_parts(world.services, settings=settings))
        assert warned == []
    (line,) = told_by_doctor(database_url, **SECRETS)
    assert line.startswith("warning")
    assert "LIVE credentials of provider_a: " in line
    assert warned_by_server(database_url) == [["provider_a"]]
    # Without the key nobody can tell LIVE from SANDBOX, and the doctor says so.
    (unsure,) = told_by_doctor(database_url)
    assert "PAYAGG_ENCRYPTION_KEYS" in unsure
    assert told_by_doctor(database_url, **SECRETS, **NETWORKS) == []
