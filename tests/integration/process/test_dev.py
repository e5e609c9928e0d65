"""`payagg dev` as a newcomer meets it: started as a command, its tour pasted as it stands, stopped by Ctrl-C."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from payagg.entrypoints.process.python_flaws import python_flaw
from tests.support.error_lines import ERROR_LOG
from tests.support.ports import free_port
from tests.support.processes import environment, payagg

STOP_SECONDS = 30
PATIENCE = 60  # a bound for a slow machine, never an expectation


def command(state: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return payagg(*arguments, PAYAGG_STATE_DIR=str(state))


@contextmanager
def dev(state: Path, port: int, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """A running `payagg dev`; leaving presses Ctrl-C and expects a clean end."""
    ERROR_LOG.watch(state / "dev.log")
    process = subprocess.Popen(
        [sys.executable, "-m", "payagg", "dev", "--port", str(port), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PAYAGG_STATE_DIR=str(state)),
    )
    try:
        yield process
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=STOP_SECONDS)
        assert process.returncode == 0, told
        assert told.endswith("Stopped; the data is kept.\n")
    finally:
        process.kill()
        process.wait()


def first_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def printed_tour(stream: IO[str] | None) -> list[str]:
    """The lines up to the one that says how to stop."""
    assert stream is not None
    lines = []
    for line in stream:
        lines.append(line.rstrip("\n"))
        if "Ctrl-C" in line:
            break
    return lines


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    """A state folder on which `dev` has run once, so that each test is a later start, alone or after the others."""
    folder = tmp_path_factory.mktemp("dev") / "state"
    with dev(folder, port, "--json") as process:
        assert json.loads(first_line(process.stdout)) == json.loads((folder / "demo.json").read_text())
        assert (folder / "demo.json").stat().st_mode & 0o777 == 0o600
    return folder


def inbox_holds(demo: dict[str, str], kind: str, reference: str) -> dict[str, Any]:
    """Waits for the delivery of that event, as the inbox page does."""
    origin = demo["webhookInboxUrl"]
    with httpx.Client(trust_env=False) as client:
        for _ in range(PATIENCE * 10):
            for received in client.get(f"{origin}/deliveries").json()["deliveries"]:
                if received["type"] == kind and reference in received["body"]:
                    return dict(received)
            # The page polls as well; there is no other signal to wait for.
            subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError(f"{kind} of {reference} never arrived")


def test_a_payment_is_paid_and_its_signed_webhook_arrives(state: Path, port: int) -> None:
    with dev(state, port, "--json") as process:
        demo = json.loads(first_line(process.stdout))
        reference = demo["checkoutUrl"].rpartition("/")[2]
        with httpx.Client(base_url=demo["baseUrl"], trust_env=False, timeout=PATIENCE) as api:
            card = {"gatewaySlug": "sandbox", "cardNumber": "4242 4242 4242 4242"}
            assert api.post(f"/public/payments/{reference}/process", json=card).status_code == 200
            verified = api.get(f"/public/payments/{reference}/verify").json()["data"]
            assert verified["status"] == "SUCCESS"
            key = {"Authorization": f"Bearer {demo['sandboxSecretKey']}"}
            assert api.get(f"/payments/{reference}", headers=key).json()["data"]["status"] == "SUCCESS"
            live = {"Authorization": f"Bearer {demo['liveSecretKey']}"}
            assert api.get("/payments/context", headers=live).json()["data"]["environment"] == "LIVE"
            admin = {"Authorization": f"Bearer {demo['adminToken']}"}
            gateways = api.get("/admin/gateways", headers=admin).json()["data"]
            assert {one["status"] for one in gateways} == {"ACTIVE"}
            merchant = {"Authorization": f"Bearer {demo['merchantToken']}"}
            listed = api.get(f"/merchant/businesses/{demo['businessId']}/webhooks", headers=merchant)
            assert len(listed.json()["data"]) == 1
            assert api.get(demo["docsUrl"]).status_code == 200
            received = inbox_holds(demo, "payment.success", reference)
            assert received["verdict"] == "Signature verified"
            assert received["verified"]
            again = api.post(f"{demo['webhookInboxUrl']}/redeliver/{received['eventId']}", headers={"X-Inbox": "1"})
            assert again.json()["message"] == "It is on its way again."
            foreign = api.post(f"{demo['webhookInboxUrl']}/redeliver/{received['eventId']}")
            assert foreign.status_code == 403
            assert "default-src 'none'" in api.get(demo["webhookInboxUrl"]).headers["content-security-policy"]
        told = command(state, "explain", reference)
        assert told.returncode == 0
        for word in (
            "initiated",
            "INITIATED -> PENDING",
            "PENDING -> SUCCESS",
            "payment.success",
            "DELIVERED after try 1",
        ):
            assert word in told.stdout
        assert "ada@example.com" not in told.stdout
        examined = command(state, "doctor")
        assert examined.returncode == 0, examined.stdout
    log = (state / "dev.log").read_text()
    assert reference in log
    assert log.count("this Python has a known flaw") == (python_flaw() is not None)
    for secret in (demo["sandboxSecretKey"], demo["merchantToken"], "4242424242424242", "ada@example.com"):
        assert secret not in log


@pytest.mark.rule("access.32")
def test_another_hosts_name_is_answered_by_nothing_of_it(state: Path, port: int) -> None:
    with dev(state, port, "--json") as process:
        demo = json.loads(first_line(process.stdout))
        origin = f"http://127.0.0.1:{port}"
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            key = {"Authorization": f"Bearer {demo['sandboxSecretKey']}"}
            for path in ("/docs", "/dev/inbox/deliveries", "/metrics", "/healthz", "/api/v1/payments/context", "/none"):
                rebound = client.get(origin + path, headers=key | {"Host": f"evil.example:{port}"})
                assert rebound.status_code == 400, path
                assert rebound.json()["error"]["field"] == "Host"
                assert rebound.headers["x-request-id"]
            for name in ("localhost", "[::1]", "127.0.0.1"):
                own = client.get(f"{origin}/dev/inbox/deliveries", headers={"Host": f"{name}:{port}"})
                assert own.status_code == 200
            admin = {"Authorization": f"Bearer {demo['adminToken']}"}
            assert client.get(f"{demo['baseUrl']}/admin/gateways", headers=admin).status_code == 200
        for fake in (port + 1, port + 2):
            page = httpx.get(f"http://127.0.0.1:{fake}/js/v1/bundle.js", headers={"Host": "evil.example"})
            assert page.status_code == 400


def test_the_tour_pasted_as_printed_works_on_the_kept_data(state: Path, port: int) -> None:
    before = json.loads((state / "demo.json").read_text())
    with dev(state, port) as process:
        lines = printed_tour(process.stdout)
        after = json.loads((state / "demo.json").read_text())
        for kept in ("businessId", "sandboxSecretKey", "liveSecretKey"):
            assert after[kept] == before[kept]
        assert after["checkoutUrl"] != before["checkoutUrl"]
        assert any(after["checkoutUrl"] in line for line in lines)
        curls = [line.strip() for line in lines if line.strip().startswith("curl ")]
        assert len(curls) == 3
        answers = []
        for line in curls:
            pasted = subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True, timeout=PATIENCE)
            answers.append(json.loads(pasted.stdout))
        assert [answer["success"] for answer in answers] == [True, True, True]
        assert [answer["data"]["status"] for answer in answers] == ["INITIATED", "INITIATED", "SUCCESS"]
        assert inbox_holds(after, "payment.success", answers[2]["data"]["reference"])["verified"]
        second = command(state, "dev", "--port", str(free_port()))
        assert second.returncode == 1
        assert re.fullmatch(r"payagg: Another `payagg dev` already runs on .*\.\n", second.stderr)
        made = command(state, "business", "create", "--name", "Beside", "--owner", "someone")
        assert made.returncode == 0
        assert httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    assert not (state / "postgres" / "postmaster.pid").exists()


def test_a_busy_port_is_one_line_that_names_the_port_and_the_option(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = str(taken.getsockname()[1])
        told = command(tmp_path / "state", "dev", "--port", busy)
    assert told.returncode == 1
    assert re.fullmatch(rf"payagg: Port {busy} on 127\.0\.0\.1 cannot be used .*--port.*\n", told.stderr)
    assert not (tmp_path / "state" / "postgres").exists()


def test_fresh_forgets_the_old_data_and_keeps_what_is_not_ours(state: Path, port: int) -> None:
    before = json.loads((state / "demo.json").read_text())
    (state / "notes.txt").write_text("mine")
    with dev(state, port, "--json", "--fresh") as process:
        after = json.loads(first_line(process.stdout))
    assert after["businessId"] != before["businessId"]
    assert after["sandboxSecretKey"] != before["sandboxSecretKey"]
    assert (state / "notes.txt").read_text() == "mine"
