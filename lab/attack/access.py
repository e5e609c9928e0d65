"""What is not the asker's: a product for developers read by another site's page, metrics read by anybody, and how much
one business may store, call and ask."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from lab.attack.target import PATIENCE, AttackResult, Target

DEV_NAMES = (
    "evil.example:{port}",
    "evil.example",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example",
    "0.0.0.0:{port}",
)
DEV_PATHS = ("/dev/inbox", "/dev/inbox/deliveries", "/metrics", "/docs", "/openapi.json", "/api/v1/payments/context")


def attack_dev_under_another_name(target: Target) -> AttackResult:
    """Reads `dev`'s pages and data under other host names."""
    port = target.dev_origin.rpartition(":")[2]
    with httpx.Client(base_url=target.dev_origin, timeout=PATIENCE, trust_env=False) as client:
        answers = [
            client.get(path, headers=target.as_key | {"Host": name.format(port=port)})
            for name in DEV_NAMES
            for path in DEV_PATHS
        ]
    read = sum(answer.status_code == 200 for answer in answers)
    statuses = ", ".join(sorted({str(answer.status_code) for answer in answers}))
    return AttackResult(
        f"{len(answers)} requests under {len(DEV_NAMES)} names", f"{read} read; answered {statuses}", read > 0
    )


PATHS = ("/metrics", "/metrics/", "//metrics", "/METRICS", "/metrics?x=1", "/%6detrics", "/api/v1/metrics")
CREDENTIALS: tuple[dict[str, str], ...] = (
    {},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer None"},
    {"Authorization": "Basic Og=="},
    {"X-Forwarded-For": "127.0.0.1"},
)


def attack_metrics_without_a_token(target: Target) -> AttackResult:
    """Asks for the metrics under several spellings, with no credential and with wrong ones."""
    asked = [(path, headers) for path in PATHS for headers in (*CREDENTIALS, target.as_key, target.as_owner)]
    answers = [target.ask("GET", path, headers=headers) for path, headers in asked]
    read = sum("payagg_" in answer.text for answer in answers)
    statuses = ", ".join(sorted({str(answer.status_code) for answer in answers}))
    return AttackResult(f"{len(asked)} ways to ask", f"{read} read them; answered {statuses}", read > 0)


STORED_MAX = 40  # endpoints; more than twice what may be stored
ENDPOINT_PAUSE = 5.1  # seconds until one endpoint may be tested again
ROUNDS = 2
ASKED = 20  # requests of one link


def attack_endpoints_without_number(target: Target) -> AttackResult:
    """Creates endpoints and switches each off, so that the limit of active ones is never met."""
    made = _endpoints(target, STORED_MAX)
    logs = [target.ask("GET", f"{_path(target)}/{one}/deliveries", headers=target.as_owner) for one in made]
    kept = sum(answer.is_success for answer in logs)
    _remove(target, made)
    tried = f"{STORED_MAX} endpoints, each switched off at once"
    return AttackResult(tried, f"{len(made)} made, {kept} kept", kept >= STORED_MAX)


def attack_tests_without_number(target: Target) -> AttackResult:
    """Tests every endpoint as often as that endpoint allows, all at once, at names that take long."""
    made = _endpoints(target, STORED_MAX)
    statuses: list[int] = []
    with ThreadPoolExecutor(len(made) or 1) as pool:
        for number in range(ROUNDS):
            time.sleep(ENDPOINT_PAUSE if number else 0)
            statuses += pool.map(lambda one: _test(target, one), made)
    _remove(target, made)
    done, refused = statuses.count(200), statuses.count(429)
    happened = f"{done} done, {refused} answered 429"
    return AttackResult(f"{len(statuses)} tests of {len(made)} endpoints", happened, refused == 0 and done > 0)


def attack_one_checkout_link_without_end(target: Target) -> AttackResult:
    """Asks for one payment again and again: a limit of its link must be told."""
    asked = target.a_payment()
    told = [_left(target, asked) for _ in range(ASKED)]
    happened = f"{sum(left < 0 for left in told)} answered without a limit, the least left {min(told)}"
    return AttackResult(f"{ASKED} requests of one link", happened, min(told) < 0)


def _path(target: Target) -> str:
    return f"/api/v1/merchant/businesses/{target.business_id}/webhooks"


def _endpoints(target: Target, wanted: int) -> list[str]:
    """The ids of as many endpoints as are made, switched off."""
    made = []
    for number in range(wanted):
        body = {"url": f"https://silent-{number}.invalid/", "environment": "SANDBOX"}
        answer = target.ask("POST", _path(target), json=body, headers=target.as_owner)
        if answer.is_success:
            made.append(str(answer.json()["data"].get("id", number)))
            target.ask("DELETE", f"{_path(target)}/{made[-1]}", headers=target.as_owner)
    return made


def _test(target: Target, endpoint_id: str) -> int:
    return target.ask("POST", f"{_path(target)}/{endpoint_id}/test", headers=target.as_owner).status_code


def _remove(target: Target, made: list[str]) -> None:
    for endpoint_id in made:
        query = {"permanently": "true"}
        target.ask("DELETE", f"{_path(target)}/{endpoint_id}", params=query, headers=target.as_owner)


def _left(target: Target, reference: str) -> int:
    """How many requests the link's limit has left, -1 where no limit is told."""
    told = target.ask("GET", f"/api/v1/public/payments/{reference}").headers.get("ratelimit", "")
    found = re.search(r'"reference";r=(\d+)', told)
    return int(found[1]) if found else -1
