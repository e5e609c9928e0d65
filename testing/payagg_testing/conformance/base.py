"""What all conformance machines share: a target, a story, and the checks that hold for every answer."""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import reject
from hypothesis.stateful import RuleBasedStateMachine

from payagg_testing.conformance.assumptions import assumption_of
from payagg_testing.conformance.expectation import Expected, look
from payagg_testing.conformance.service import ServiceAnswer, ServiceCall
from payagg_testing.conformance.statements import Need, route_or_code
from payagg_testing.conformance.story import Story
from payagg_testing.conformance.target import ConformanceTarget, MerchantAccess
from payagg_testing.conformance.violation import Violation


class ConformanceMachine(RuleBasedStateMachine):
    """Rules draw what people do; `ask` sends it and compares the answer with what the interface says."""

    title: ClassVar[str]
    target: ClassVar[ConformanceTarget]
    steps_taken: ClassVar[list[int]]  # one number: requests sent over all histories
    known: ClassVar[set[str]]  # kinds of violations: a history that meets one ends and counts for nothing
    differs: ClassVar[frozenset[str | None]] = frozenset()  # the assumptions that were found wrong
    last: ClassVar[list[Violation]]  # the last one met, in case the search cannot repeat it
    tried: ClassVar[set[str]]  # statements, routes and error codes, over all histories
    needs: ClassVar[tuple[Need, ...]] = ()  # of the target, without which no rule runs
    in_passing: ClassVar[Mapping[str, tuple[Need, ...]]] = {}  # statements that no rule as a whole tries
    gone: ClassVar[set[str]]  # what earlier histories cleaned away, which must not be there any more

    def __init__(self) -> None:
        super().__init__()
        self.nonce = uuid.uuid4().hex[:8]  # every history has names of its own: a service remembers the others'
        self.story = Story(self.title)
        self.raw_secrets: set[str] = set()  # shown once; no later answer may hold one
        self.owners = [number for number, merchant in enumerate(self.merchants) if merchant.token is not None]
        for number, merchant in enumerate(self.target.merchants, 1):
            self.story.hide(merchant.token, f"token of merchant {number}")
            for environment, key in merchant.keys.items():
                self.story.hide(key, f"{environment} key of business {number}")
                self.raw_secrets.add(key)
        for name in ("unapproved", "suspended"):
            merchant = getattr(self.target, name)
            if merchant is not None:
                self.story.hide(merchant.token, f"token of the {name} merchant")
        self.story.hide(self.target.admin_token, "token of the administrator")

    @property
    def merchants(self) -> tuple[MerchantAccess, ...]:
        return self.target.merchants

    def ask(
        self,
        who: str,
        what: str,
        method: str,
        path: str,
        *statuses: int,
        bearer: str | None = None,
        body: Any = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        code: str | None = None,
        data: dict[str, Any] | None = None,
        event: str | None = None,
        field: str = "",
    ) -> ServiceAnswer:
        """The answer, which is as foreseen: one of `statuses`, with `code`, and with these values in its `data`."""
        if path.endswith(("/simulate", "/process")) and isinstance(body, dict):
            body = {name: self.target.words.get(value, value) for name, value in body.items()}
        call = ServiceCall(method, path, bearer, body, content, headers or {}, event)
        answer = self.target.service.send(call)
        self.steps_taken[0] += 1
        self.tried.update(route_or_code(call, answer), ["access.1"])
        expected = Expected(statuses, code, data, field)
        self.story.did(f"{who} {what}", call, answer, expected)
        fault = expected.fault(answer)
        if fault is not None:
            self.fail(fault, assumption_of(call, expected, answer, fault))
        fault = self._shown_secret(answer)
        if fault is not None:
            self.fail(fault)
        if answer.status == 201 and isinstance(answer.data, dict):
            self.raw_secrets |= {answer.data[n] for n in ("secretKey", "signingSecret") if n in answer.data}
        return answer

    def ask_as_owner(
        self, merchant: int, what: str, method: str, path: str, *statuses: int, **more: Any
    ) -> ServiceAnswer:
        """Of business number `merchant`, by its manager, at a path below its own."""
        owner = self.merchants[merchant]
        who, path = f"owner {merchant + 1}", owner.path + path
        return self.ask(who, what, method, path, *statuses, bearer=owner.token, **more)

    def admin(self, what: str, method: str, path: str, *statuses: int, **more: Any) -> ServiceAnswer:
        """At a path below the administrators' gateways."""
        bearer = self.target.admin_token
        return self.ask("the administrator", what, method, f"/admin/gateways{path}", *statuses, bearer=bearer, **more)

    def ask_together(
        self, what: str, calls: Sequence[ServiceCall], statuses: Sequence[int], same: str
    ) -> list[ServiceAnswer]:
        """The answers to requests of one moment: between them these statuses, and one value at the path `same`."""
        answers = self.target.service.send_together(calls)
        self.steps_taken[0] += len(calls)
        self.tried.update(*map(route_or_code, calls, answers))
        self.story.did_together(what, calls, answers, statuses, same)
        came = sorted(answer.status for answer in answers)
        if came != sorted(statuses):
            self.fail(f"the statuses are {came}")
        if len({json.dumps(look(answer.data, same)) for answer in answers}) != 1:
            self.fail(f"they differ in {same}")
        return answers

    def wait(self, duration: timedelta) -> None:
        self.story.add_wait(duration)
        self.target.service.wait(duration)

    def pause(self, duration: timedelta) -> None:
        """As `wait`, in real time where the clock is not ours: for seconds, not minutes."""
        self.story.add_wait(duration)
        self.target.service.pause(duration)

    def fail(self, fault: str, assumption: str | None = None) -> None:
        violation = Violation(self.story.copy(), self.story.mask(fault), assumption)
        if violation.kind in self.known:
            reject()
        self.last.append(violation)
        raise violation

    def _shown_secret(self, answer: ServiceAnswer) -> str | None:
        shown = next((one for one in self.raw_secrets if one in answer.text), None)
        return f"{self.story.mask(shown)} is shown again" if shown is not None else None
