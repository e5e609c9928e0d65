"""The harness on honest servers that were written from the interface document alone: whatever it finds there is a false
alarm, until the document says otherwise."""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import jwt

from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.kit.processes import Processes, until
from tests.support.machine import ROOT
from tests.support.ports import free_port

HERE = Path(__file__).parent
SERVERS = {"starlette": (sys.executable, str(HERE / "starlette_server.py"))}
JWT_KEY = "of the neutral servers, thirty-two bytes"
USERS = ("ada", "bola")
HISTORIES = 10
SECONDS = 1200
RATE = 1_000_000  # of events a minute: the limit of 100 would have a run wait
# Not webhooks: the interface shows neither the names of events nor how they are signed.
MACHINES = ("payments", "idempotency", "api-keys", "businesses", "gateways", "logos", "settlement", "settlement-b")


def token(**claims: object) -> str:
    return jwt.encode({**claims, "exp": int(time.time()) + 7200}, JWT_KEY, "HS256")


def verdict(name: str, folder: Path, more: Sequence[str]) -> str:
    """What the harness says of one server, with its exit status in the last line."""
    port = free_port()
    shops = [{"id": f"shop-{user}", "name": f"Shop of {user}", "kyc": "APPROVED", "status": "ACTIVE",
              "members": {user: "OWNER"}} for user in USERS]  # fmt: skip
    config = {"port": port, "jwtKey": JWT_KEY, "ttl": 3600, "drain": 1800, "rate": RATE, "businesses": shops}
    url = f"http://127.0.0.1:{port}/api/v1"
    words = ["run", "--url", url, "--builtin-slug", "house", "--inbox-port", "0", "--provider", "provider_a",
             "--provider-b", "provider_b", "--admin-token", token(sub="root", type="admin", role="ADMIN")]  # fmt: skip
    for shop, user in zip(shops, USERS, strict=True):
        words += [
            "--merchant-token",
            token(sub=user, type="merchant", emailVerified=True),
            "--business",
            str(shop["id"]),
        ]
    with Processes(folder) as processes:
        processes.start(name, [*SERVERS[name], json.dumps(config)])
        until(lambda: answers(f"{url}/payments/context"), name, 30)
        command = [sys.executable, "-m", "payagg_testing", *words, *more]
        for machine in MACHINES:
            command += ["--machine", machine]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
        print(ran.stdout, ran.stderr, *processes.errors(), sep="\n", flush=True)
        processes.kill(name)
    return f"{ran.stdout}\nstatus {ran.returncode}"


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 401
    except httpx.TransportError:
        return False


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab neutral", description=__doc__)
    parser.add_argument("--server", action="append", choices=list(SERVERS), help="one of them (all)")
    parser.add_argument("--histories", type=int, default=HISTORIES, help="per machine")
    chosen, more = parser.parse_known_args(arguments)
    tally, requests = RunSummary("neutral", arguments), 0
    with a_folder("neutral") as folder:
        for name in chosen.server or SERVERS:
            told = verdict(name, folder, ["--histories", str(chosen.histories), *more])
            requests += sum(map(int, re.findall(r"([0-9]+) requests ", told)))
            tally.line(name, [] if told.endswith("status 0") else ["a false alarm, see above"])
    return tally.end(whole=not (chosen.server or more) and chosen.histories >= HISTORIES, requests=requests)
