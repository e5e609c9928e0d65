"""One business against the others: what it may store, how often we call hosts of its choice, how much it may ask."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

from lab.attack.target import AttackResult, Target

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
