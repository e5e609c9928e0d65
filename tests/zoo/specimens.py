"""Every broken service of the zoo as a target for the machine that must notice it, and how the search went."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from payagg.testing.conformance.inbox import Inbox
from payagg.testing.conformance.provider import ProviderAccount, ProviderBAccount
from payagg.testing.conformance.run import Effort, run_machine
from payagg.testing.conformance.service import Service
from payagg.testing.conformance.target import ConformanceTarget, MerchantAccess
from payagg.testing.conformance.violation import Violation
from tests.zoo.broken_by_hand import BROKEN
from tests.zoo.broken_product import PARTS, product_target
from tests.zoo.broken_rules import RULES, rules_target
from tests.zoo.by_hand import Handmade

Accounts = tuple[ProviderAccount, ProviderBAccount]
# The same search each time, in the test and in the table.
HUNT = Effort(histories=200, actions=30, seed=1, shrinks=False)


@contextmanager
def hand_target(made: type[Handmade]) -> Iterator[ConformanceTarget]:
    inbox = Inbox("https://inbox.example")
    app = made(inbox)
    service = Service("http://hand.example/api/v1", transport=httpx.ASGITransport(app), wait=app.wait, work=app.work)
    one, two, unapproved, suspended = (MerchantAccess(*pair) for pair in app.businesses.items())
    merchants = (one, two)
    yield ConformanceTarget(service, merchants, app.admin, unapproved, suspended, inbox=inbox)
    service.close()


@dataclass(frozen=True)
class Specimen:
    """A broken service: its name, what is wrong, which machine must notice, and how it is started."""

    name: str
    defect: str
    machine: str
    origin: str
    opened: Callable[[], AbstractContextManager[ConformanceTarget]]


@dataclass(frozen=True)
class Catch:
    """What came of a hunt; `violation` None: it got away."""

    specimen: Specimen
    requests: int
    seconds: float
    violation: Violation | None


def specimens() -> list[Specimen]:
    return [*map(_by_hand, BROKEN), *map(_product, PARTS), *(_rule(*one) for one in RULES)]


def _by_hand(made: Any) -> Specimen:
    return Specimen(made.__name__, made.__doc__, made.machine, "by hand", partial(hand_target, made))


def _product(part: Any) -> Specimen:
    machine, _, words = part.__doc__.partition(": ") if not isinstance(part, type) else ("", "", "")
    name = _name(part)
    opened = partial(product_target, part)
    return Specimen(name, words or part.__doc__, machine or part.machine, "product", opened)


def _rule(field: str, rule: Any) -> Specimen:
    machine, _, words = rule.__doc__.partition(": ")
    return Specimen(_name(rule), words, machine, "rules", partial(rules_target, field, rule))


def _name(part: Any) -> str:
    return str(part.__name__) if isinstance(part, type) else "".join(map(str.title, part.__name__.split("_")))


def hunted(specimen: Specimen, accounts: Accounts, effort: Effort = HUNT) -> Catch:
    began = time.perf_counter()
    with specimen.opened() as target:
        target.provider, target.provider_b = accounts
        verdict = run_machine(specimen.machine, target, effort)
    return Catch(specimen, verdict.requests, time.perf_counter() - began, verdict.violation)
