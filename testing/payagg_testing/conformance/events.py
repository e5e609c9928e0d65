"""What merchants receive: whether the tries at one address are what an endpoint there must get, and nothing else.

The format is the one that payagg documents: Standard Webhooks signatures, `payment.<status>` events.
"""

import hmac
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from payagg.domain.signing import secret_key, signature
from payagg_testing.conformance.inbox import Inbox, ReceivedTry


@dataclass(frozen=True)
class Wanted:
    """An event that must arrive, about a payment of this reference."""

    type: str
    reference: str
    amount: int
    environment: str

    @property
    def status(self) -> str:
        return self.type.partition(".")[2].upper()


@dataclass(frozen=True)
class Signers:
    """Whose secrets sign the tries from number `first` on: all of `must`, none of `never`."""

    first: int
    must: Sequence[str]
    never: Sequence[str] = ()


def fault_of(
    tries: Sequence[ReceivedTry], signers: Sequence[Signers], wanted: Sequence[Wanted], references: Collection[str]
) -> str | None:
    """What is wrong with all that arrived at one address; None when nothing is and everything arrived.

    Each event at least once until it was taken with 2xx, every try with the same id and body, signed as `signers` say.
    Of payments other than `references`, which somebody else made, nothing is foreseen.
    """
    by_id: dict[str, bytes] = {}
    taken: dict[tuple[str, str], str] = {}
    for number, one in enumerate(tries):
        fault = _fault_of_try(one, [each for each in signers if each.first <= number][-1])
        if fault is not None:
            return fault
        id, event = one.headers["webhook-id"], json.loads(one.body)
        if not {"type", "data", "environment"} <= event.keys():
            return f"event {id} is of another shape"
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
        data = event["data"]
        found = data.get("amount"), data.get("status"), data.get("environment", about.environment), event["environment"]
        if found != (about.amount, about.status, about.environment, about.environment):
            return f"{fact[0]} of {fact[1]} tells of {found}"
    accepted = {json.loads(one.body)["type"] + one.body.decode() for one in tries if one.answered < 300}
    missing = [w for w in wanted if not any(a.startswith(w.type) and w.reference in a for a in accepted)]
    return f"{missing[0].type} of {missing[0].reference} never came" if missing else None


def _fault_of_try(one: ReceivedTry, signers: Signers) -> str | None:
    id, timestamp = one.headers.get("webhook-id", ""), one.headers.get("webhook-timestamp", "")
    if not timestamp.isdigit():
        return "a try has no webhook-timestamp"
    for name in ("webhook-signature", "x-service-signature"):
        given = one.headers.get(name, "").split(" ")
        newest, *older = [_is_among(given, secret, one) for secret in signers.must]
        if not newest:
            return f"{name} of {id or 'a try'} does not fit the raw body"
        if not all(older):
            return f"{name} of {id} lacks the secret that was replaced less than a day ago"
        if any(_is_among(given, secret, one) for secret in signers.never):
            return f"{name} of {id} still has the secret that was replaced more than a day ago"
    event = json.loads(one.body)
    return None if event.get("id") == id else f"the body of {id} is of event {event.get('id')}"


def _is_among(given: Sequence[str], secret: str, one: ReceivedTry) -> bool:
    expected = _signature(secret, one.headers.get("webhook-id", ""), int(one.headers["webhook-timestamp"]), one.body)
    return any(hmac.compare_digest(each.encode(), expected.encode()) for each in given)


@lru_cache(maxsize=4096)  # all that came is looked at again after each payment
def _signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    return signature([secret_key(secret)], id, timestamp, body)


def wait_for_events(
    inbox: Inbox,
    path: str,
    signers: Sequence[Signers],
    wanted: Sequence[Wanted],
    references: Collection[str],
    pause: Callable[[], None],
    tries: int,
) -> str | None:
    """The fault once everything arrived, or after so many pauses."""
    fault = fault_of(inbox.deliveries_at(path), signers, wanted, references)
    while fault is not None and "never came" in fault and tries > 0:
        pause()
        tries -= 1
        fault = fault_of(inbox.deliveries_at(path), signers, wanted, references)
    return fault
