"""The harness on an honest server that was written from the interface document alone: whatever it finds there is a false
alarm, until the document says otherwise. Where that is silent it differs from payagg, and the run says in what."""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import jwt
from payagg_testing import MACHINES, ConformanceTarget, Effort, MerchantAccess, ServiceAccess, run_machine
from payagg_testing.conformance.run import coverage

from lab.kit.figures import RunSummary
from lab.kit.places import a_folder
from lab.kit.processes import Processes, until
from tests.support.ports import free_port

SERVER = Path(__file__).parent / "node_server.mjs"
JWT_KEY = "of the neutral server, thirty-two bytes"
HISTORIES = 15
RATE = 1_000_000  # of events a minute: the limit of 100 would have a run wait
SHOPS = {"ada": {}, "bola": {}, "chidi": {"kyc": "NOT_SUBMITTED"}, "dayo": {"status": "SUSPENDED"}}
# Its own for our outcomes and test cards.
OUTCOMES = {"SUCCESS": "ok", "FAILED": "ko", "REVERSED": "undo"}
CARDS = ("4242424242424242", "4000000000000002", "4000000000000259", "4000000000000119")
WORDS = OUTCOMES | {card: digit * 16 for card, digit in zip(CARDS, "1234", strict=True)}


def token(**claims: object) -> str:
    return jwt.encode({**claims, "exp": int(time.time()) + 7200}, JWT_KEY, "HS256")


def shop(user: str) -> MerchantAccess:
    return MerchantAccess(f"shop-{user}", token(sub=user, type="merchant", emailVerified=True))


@contextmanager
def a_target() -> Iterator[ConformanceTarget]:
    port = free_port()
    shops = [{"id": f"shop-{user}", "name": f"Shop of {user}", "kyc": "APPROVED", "status": "ACTIVE",
              "members": {user: "OWNER"}, **other} for user, other in SHOPS.items()]  # fmt: skip
    config = {"port": port, "jwtKey": JWT_KEY, "ttl": 3600, "drain": 1800, "rate": RATE, "businesses": shops}
    url = f"http://127.0.0.1:{port}/api/v1"
    owners = [shop(user) for user in ("ada", "bola")]
    access = ServiceAccess(
        url, token(sub="root", type="admin", role="ADMIN"), [one.token or "" for one in owners],
        [one.business_id for one in owners], builtin_slug="house", inbox_port=0, provider="provider_a",
        provider_b="provider_b",
    )  # fmt: skip
    with a_folder("neutral") as folder, Processes(folder) as processes:
        processes.start("server", ["node", str(SERVER), json.dumps(config)])
        until(lambda: answers(f"{url}/payments/context"), "the server answers", 30)
        target = access.open_target()
        target.words, target.unapproved, target.suspended = WORDS, shop("chidi"), shop("dayo")
        try:
            yield target
        finally:
            target.close()
        if errors := processes.errors():
            raise SystemExit("\n".join(["the server fails itself:", *errors]))


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 401
    except httpx.TransportError:
        return False


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab neutral", description=__doc__)
    parser.add_argument("--machine", action="append", choices=list(MACHINES), help="one of them (all)")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    effort = Effort(HISTORIES, seed=chosen.seed, shrinks=False, kinds=5)
    tally, verdicts = RunSummary("neutral", arguments), []
    with a_target() as target:
        for machine in chosen.machine or MACHINES:
            verdicts.append(verdict := run_machine(machine, target, effort))
            said = f"{machine:12} {verdict.requests:6} requests {verdict.seconds:6.1f} s  {verdict.words}"
            tally.line(said, [*map(str, verdict.breaks), *filter(None, [verdict.skipped])])
    found, requests = coverage(verdicts), sum(one.requests for one in verdicts)
    print(f"{found.missing or 'nothing'} was not tried")
    return tally.end(whole=not arguments, statements=len(found.reasons) - len(found.missing), requests=requests)
