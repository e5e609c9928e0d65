"""What merchants receive: whether the tries at one address are what an endpoint there must get, and nothing else.

The format is the one that payagg documents: Standard Webhooks signatures, `payment.<status>` events.
"""

import hmac
import json
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from payagg.domain.signing import secret_key, signature
from payagg.testing.conformance.inbox import Inbox, ReceivedTry


@dataclass(frozen=True)
class Wanted:
    """An event that must arrive, about a payment of this reference."""

    type: str
    reference: str
    amount: int
    environment: str


def fault_of(
    tries: Sequence[ReceivedTry], secret: str, wanted: Sequence[Wanted], references: Collection[str]
) -> str | None:
    """What is wrong with all that arrived at one address; None when nothing is and everything arrived.

    Each event at least once until it was taken with 2xx, every try with the same id and body, signed with the secret.
    Of payments other than `references`, which somebody else made, nothing is foreseen.
    """
    by_id: dict[str, bytes] = {}
    taken: dict[tuple[str, str], str] = {}
    for one in tries:
        fault = _fault_of_try(one, secret)
        if fault is not None:
            return fault
        id, event = one.headers["webhook-id"], json.loads(one.body)
        if by_id.setdefault(id, one.body) != one.body:
            return f"event {id} came with another body"
        fact = event["type"], event["data"].get("reference", "")
        if taken.setdefault(fact, id) != id:
            return f"{fact[0]} of {fact[1]} came under two ids"
        about = next((each for each in wanted if (each.type, each.reference) == fact), None)
        if about is None and fact[1] not in references:
            continue
        if about is None:
            return f"nobody here asked for {fact[0]} of {fact[1]}"
        found = event["data"].get("amount"), event["data"].get("environment", about.environment), event["environment"]
        if found != (about.amount, about.environment, about.environment):
            return f"{fact[0]} of {fact[1]} tells of {found}"
    accepted = {json.loads(one.body)["type"] + one.body.decode() for one in tries if one.answered < 300}
    missing = [w for w in wanted if not any(a.startswith(w.type) and w.reference in a for a in accepted)]
    return f"{missing[0].type} of {missing[0].reference} never came" if missing else None


def _fault_of_try(one: ReceivedTry, secret: str) -> str | None:
    id, timestamp = one.headers.get("webhook-id", ""), one.headers.get("webhook-timestamp", "")
    if not timestamp.isdigit():
        return "a try has no webhook-timestamp"
    expected = signature([secret_key(secret)], id, int(timestamp), one.body)
    for name in ("webhook-signature", "x-service-signature"):
        given = one.headers.get(name, "").split(" ")
        if not any(hmac.compare_digest(each.encode(), expected.encode()) for each in given):
            return f"{name} of {id or 'a try'} does not fit the raw body"
    event = json.loads(one.body)
    return None if event.get("id") == id else f"the body of {id} is of event {event.get('id')}"


def settled(
    inbox: Inbox,
    path: str,
    secret: str,
    wanted: Sequence[Wanted],
    references: Collection[str],
    pause: Callable[[], None],
    tries: int,
) -> str | None:
    """The fault once everything arrived, or after so many pauses."""
    fault = fault_of(inbox.received(path), secret, wanted, references)
    while fault is not None and "never came" in fault and tries > 0:
        pause()
        tries -= 1
        fault = fault_of(inbox.received(path), secret, wanted, references)
    return fault


def expect_events(
    step: int,
    inbox: Inbox,
    path: str,
    secret: str,
    wanted: Sequence[Mapping[str, Any]],
    references: Collection[str],
) -> None:
    """For replaying scripts: ends the program when something is wrong a minute later."""
    events = [Wanted(**each) for each in wanted]
    fault = settled(inbox, path, secret, events, references, lambda: time.sleep(1), 60)
    if fault is not None:
        sys.exit(f"step {step}: expected {len(events)} events\ncame {fault}")
