"""`payagg dev` as a newcomer meets it: started as a command, its tour pasted as it stands, stopped by Ctrl-C."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.support.error_lines import ERROR_LOG
from tests.support.http_world import bearer
from tests.support.ports import free_port
from tests.support.processes import environment, one_line, payagg, succeeded, wait_until

STOP_SECONDS = 30
PATIENCE = 60  # a bound for a slow machine, never an expectation


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
    """The lines before the one that says how to stop."""
    assert stream is not None
    return [line.rstrip("\n") for line in takewhile(lambda line: "Ctrl-C" not in line, stream)]


def inbox_holds(demo: dict[str, str], kind: str, reference: str) -> dict[str, Any]:
    """Waits for the delivery of that event, as the inbox page does."""

    def found() -> list[dict[str, Any]]:
        told = httpx.get(f"{demo['webhookInboxUrl']}/deliveries", trust_env=False).json()["deliveries"]
        return [one for one in told if one["type"] == kind and reference in one["body"]]

    wait_until(found)
    return found()[0]


def pays_and_hears_of_it(demo: dict[str, str], reference: str) -> None:
    with httpx.Client(base_url=demo["baseUrl"], trust_env=False, timeout=PATIENCE) as api:
        card = {"gatewaySlug": "sandbox", "cardNumber": "4242 4242 4242 4242"}
        assert api.post(f"/public/payments/{reference}/process", json=card).status_code == 200
        assert api.get(f"/public/payments/{reference}/verify").json()["data"]["status"] == "SUCCESS"

        def read(path: str, credential: str) -> Any:
            return api.get(path, headers=bearer(demo[credential])).json()["data"]

        assert read(f"/payments/{reference}", "sandboxSecretKey")["status"] == "SUCCESS"
        assert read("/payments/context", "liveSecretKey")["environment"] == "LIVE"
        assert {one["status"] for one in read("/admin/gateways", "adminToken")} == {"ACTIVE"}
        [endpoint] = read(f"/merchant/businesses/{demo['businessId']}/webhooks", "merchantToken")
        assert endpoint["url"] == demo["webhookInboxUrl"]
        assert api.get(demo["docsUrl"]).status_code == 200
        received = inbox_holds(demo, "payment.success", reference)
        assert (received["verdict"], received["verified"]) == ("Signature verified", True)


def explains_and_logs_no_secret(state: Path, demo: dict[str, str], reference: str) -> None:
    told = succeeded(payagg("explain", reference, PAYAGG_STATE_DIR=str(state)))
    for word in ("initiated", "INITIATED -> PENDING", "PENDING -> SUCCESS", "payment.success", "DELIVERED after try 1"):
        assert word in told
    assert "ada@example.com" not in told
    succeeded(payagg("doctor", PAYAGG_STATE_DIR=str(state)))
    log = (state / "dev.log").read_text()
    assert reference in log
    for secret in (demo["sandboxSecretKey"], demo["merchantToken"], "4242424242424242", "ada@example.com"):
        assert secret not in log


def answers_under_its_own_names_alone(demo: dict[str, str], port: int) -> None:
    for origin in (f"http://127.0.0.1:{port}/docs", f"http://127.0.0.1:{port + 1}/js/v1/bundle.js"):
        assert httpx.get(origin, headers={"Host": "evil.example"}, trust_env=False).status_code == 400
    own = httpx.get(f"{demo['webhookInboxUrl']}/deliveries", headers={"Host": f"localhost:{port}"}, trust_env=False)
    assert own.status_code == 200


def does_what_its_tour_says(state: Path, port: int, before: dict[str, str], lines: list[str]) -> None:
    after = json.loads((state / "demo.json").read_text())
    for kept in ("businessId", "sandboxSecretKey", "liveSecretKey"):
        assert after[kept] == before[kept]
    assert after["checkoutUrl"] != before["checkoutUrl"]
    assert any(after["checkoutUrl"] in line for line in lines)
    curls = [line.strip() for line in lines if line.strip().startswith("curl ")]
    assert len(curls) == 3
    answers = [json.loads(subprocess.check_output(["bash", "-c", line], timeout=PATIENCE)) for line in curls]
    assert [answer["success"] for answer in answers] == [True, True, True]
    assert [answer["data"]["status"] for answer in answers] == ["INITIATED", "INITIATED", "SUCCESS"]
    assert inbox_holds(after, "payment.success", answers[2]["data"]["reference"])["verified"]
    second = one_line(payagg("dev", "--port", str(free_port()), PAYAGG_STATE_DIR=str(state)))
    assert re.fullmatch(r"payagg: Another `payagg dev` already runs on .*\.\n", second)
    business = ("business", "create", "--name", "Beside", "--owner", "someone")
    succeeded(payagg(*business, PAYAGG_STATE_DIR=str(state)))
    assert httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200


@pytest.mark.rule("access.32")
@pytest.mark.long
@pytest.mark.release
def test_dev_from_its_first_start_over_kept_data_to_a_fresh_one(tmp_path: Path) -> None:
    state, port = tmp_path / "state", free_port()
    with dev(state, port, "--json") as process:
        demo = json.loads(first_line(process.stdout))
        assert demo == json.loads((state / "demo.json").read_text())
        assert (state / "demo.json").stat().st_mode & 0o777 == 0o600
        reference = demo["checkoutUrl"].rpartition("/")[2]
        pays_and_hears_of_it(demo, reference)
        explains_and_logs_no_secret(state, demo, reference)
        answers_under_its_own_names_alone(demo, port)
    with dev(state, port) as process:
        does_what_its_tour_says(state, port, demo, printed_tour(process.stdout))
        succeeded(payagg("business", "set", demo["businessId"], "--status", "SUSPENDED", PAYAGG_STATE_DIR=str(state)))
    with dev(state, port, "--json") as process:
        other = json.loads(first_line(process.stdout))  # a business that can pay again, beside the old one
        assert other["businessId"] != demo["businessId"]
    assert not (state / "postgres" / "postmaster.pid").exists()
    (state / "notes.txt").write_text("mine")
    with dev(state, port, "--json", "--fresh") as process:
        after = json.loads(first_line(process.stdout))
    assert after["businessId"] != demo["businessId"]
    assert after["sandboxSecretKey"] != demo["sandboxSecretKey"]
    assert (state / "notes.txt").read_text() == "mine"


def test_a_busy_port_is_one_line_that_names_the_port_and_the_option(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = str(taken.getsockname()[1])
        told = one_line(payagg("dev", "--port", busy, PAYAGG_STATE_DIR=str(tmp_path / "state")))
    assert re.fullmatch(rf"payagg: Port {busy} on 127\.0\.0\.1 cannot be used .*--port.*\n", told)
    assert not (tmp_path / "state" / "postgres").exists()
