"""A rule-based state machine that drives any payment system beside a plain model and compares them after each step.

Run it with `run_state_machine_as_test(payment_machine(make_system))`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, invariant, multiple, precondition, rule

from payagg.domain.errors import Refusal
from payagg.domain.payment import Payment, Transition
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg.testing import strategies
from payagg.testing.state_machine.model import CARDS, FINAL, GATEWAYS, HOUR, NEWS, SIMULATOR, Model

R = TypeVar("R")
# Evidence is what moves money, so it is drawn more often than words that move nothing.
WORDS = st.sampled_from(
    [
        *Outcome,
        Outcome.SUCCEEDED,
        Outcome.SUCCEEDED,
        Outcome.SUCCEEDED,
        Outcome.FAILED,
        Outcome.REVERSED,
        Outcome.DISPUTED,
    ]
)
PAYMENTS_MAX = 3
ASK_PAUSE = timedelta(seconds=2)  # a provider is asked at most this often about one payment


@dataclass(frozen=True)
class Facts:
    """Everything a system says of one payment now; `payment` is as any reader sees it at this instant."""

    payment: Payment
    transitions: tuple[Transition, ...]  # as made durable
    events: tuple[tuple[int, str], ...]  # sequence and type
    delivered: tuple[int, ...]  # sequences with a delivery to the one subscribed endpoint
    hand_offs: tuple[str, ...]
    charges: int  # started at a provider and not refused by it
    last_decline: str | None
    anomalies: frozenset[str] = field(compare=False)


class PaymentSystem(Protocol):
    """What is driven: one business with LIVE and SANDBOX payments. Refusals are raised as `Refusal`."""

    def now(self) -> datetime: ...

    def wait(self, time: timedelta) -> None: ...

    def initiate(self, amount: int, environment: Environment, key: str | None) -> str:
        """The reference of a new payment, or of the open one that holds the key."""

    def set_standing(self, is_active: bool) -> None:
        """Whether the business may take new money."""

    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> str:
        """The hand-off's URL. `refused`: the provider, should it be called, certainly refuses to start a charge."""

    def report(
        self, reference: str, number: int, gateway: str, outcome: Outcome, right_amount: bool, environment: Environment
    ) -> str:
        """What a provider's report about attempt `number` did: MOVED, UNCHANGED, ANOMALY or MISMATCH."""

    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> str:
        """The status after asking; `outcome` is what a provider (not the simulator) will say."""

    def simulate(self, reference: str, outcome: str) -> None: ...

    def sweep(self) -> None: ...

    def facts(self, reference: str) -> Facts: ...

    def close(self) -> None: ...


class PaymentMachine(RuleBasedStateMachine):
    """Samples calls, reports and waits over a few payments of one business."""

    make_system: ClassVar[Callable[[], PaymentSystem]]
    seen: ClassVar[Counter[str]]  # refusals, moves and anomalies met over all runs: what was never met was not tested
    references: Bundle[str] = Bundle("references")

    def __init__(self) -> None:
        super().__init__()
        self.system = type(self).make_system()
        self.models: dict[str, Model] = {}
        self.keys: dict[tuple[Environment, str | None], str] = {}
        self.first: dict[str, tuple[Any, ...]] = {}
        self.ended: dict[str, Payment] = {}
        self.takes_money = True

    def teardown(self) -> None:
        self.system.close()

    def expect(self, refusal: str | None, call: Callable[[], R]) -> R | None:
        """The call's answer; asserts that it is refused exactly as foreseen, and that a refusal changes nothing."""
        before = {reference: self.system.facts(reference) for reference in self.models}
        answer, code = None, None
        try:
            answer = call()
        except Refusal as raised:
            code = raised.code.name
        assert code == refusal, f"refused with {code}, foreseen {refusal}"
        if code is not None:
            self.seen[code] += 1
            after = {reference: self.system.facts(reference) for reference in self.models}
            assert after == before, "a refusal changed something"
        return answer

    # Few payments, so that a run is long enough for things to happen to each.
    @precondition(lambda self: len(self.models) < PAYMENTS_MAX)
    @rule(
        target=references,
        amount=strategies.amounts,
        environment=strategies.environments,
        key=st.sampled_from([None, None, "order-1", "order-2"]),
    )
    def initiate(self, amount: int, environment: Environment, key: str | None) -> str | MultipleResults[str]:
        now = self.system.now()
        original = self.keys.get((environment, key)) if key is not None else None
        completed = original is not None and self.models[original].seen(now)[0] in FINAL
        reference = self.expect(
            "DUPLICATE_PAYMENT" if completed else None, lambda: self.system.initiate(amount, environment, key)
        )
        if reference is None:
            return multiple()
        if original is not None:
            assert reference == original, "a replay made a second payment"
            return multiple()
        assert reference not in self.models, "a reference was given out twice"
        self.models[reference] = Model(amount, environment, now + HOUR)
        self.keys[environment, key] = reference
        return reference

    @rule(time=strategies.waits)
    def wait(self, time: timedelta) -> None:
        self.system.wait(time)

    @rule(is_active=st.sampled_from([True, True, True, True, True, False]))
    def set_standing(self, is_active: bool) -> None:
        self.takes_money = is_active
        self.system.set_standing(is_active)

    @rule(
        reference=references,
        gateway=st.sampled_from([*GATEWAYS, *GATEWAYS, SIMULATOR]),
        card=st.sampled_from(sorted(CARDS)),
        refused=st.sampled_from([False, False, True]),
    )
    def process(self, reference: str, gateway: str, card: str, refused: bool) -> None:
        model, now = self.models[reference], self.system.now()
        refused = refused and gateway != SIMULATOR
        refusal = model.refusal_of_process(now, gateway, refused, self.takes_money)
        is_first = model.hand_off is None
        url = self.expect(
            refusal,
            lambda: self.system.process(reference, gateway, card if gateway == SIMULATOR else None, refused),
        )
        if refusal == "GATEWAY_NOT_AVAILABLE" and refused and self.takes_money:
            model.attempts.append(gateway)
        if url is None:
            return
        if not is_first:
            assert url == model.hand_off, "a repeat of process gave another hand-off"
            return
        model.attempts.append(gateway)
        model.hand_off, model.handed_at, model.gateway = url, now, gateway
        model.card = card if gateway == SIMULATOR else None
        model.move("PENDING")

    @rule(
        reference=references,
        number=st.integers(1, 2),
        gateway=st.sampled_from(GATEWAYS),
        is_ours=st.sampled_from([True, True, False]),
        outcome=WORDS,
        right_amount=st.sampled_from([True, True, False]),
        right_environment=st.sampled_from([True, True, True, False]),
    )
    def report(
        self,
        reference: str,
        number: int,
        gateway: str,
        is_ours: bool,
        outcome: Outcome,
        right_amount: bool,
        right_environment: bool,
    ) -> None:
        """`is_ours` names an attempt that was made, where there is one; any other gateway may miss."""
        model = self.models[reference]
        if model.attempts:
            number = min(number, len(model.attempts))
            if is_ours and model.attempts[number - 1] != SIMULATOR:
                gateway = model.attempts[number - 1]
        other = Environment.LIVE if model.environment is Environment.SANDBOX else Environment.SANDBOX
        environment = model.environment if right_environment else other
        if outcome.value not in NEWS:
            foreseen = "UNCHANGED"
        elif not right_environment:
            model.anomalies.add("WRONG_ENVIRONMENT")
            foreseen = "ANOMALY"
        elif model.attempts[number - 1 : number] != [gateway]:
            model.anomalies.add("WRONG_PROVIDER")
            foreseen = "ANOMALY"
        else:
            foreseen = model.learn(number, outcome.value, right_amount, None, self.system.now())
        done = self.system.report(reference, number, gateway, outcome, right_amount, environment)
        assert done == foreseen, f"the report was {done}, foreseen {foreseen}"
        self.seen[done] += 1

    @rule(reference=references, outcome=WORDS, right_amount=st.sampled_from([True, True, False]))
    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> None:
        self.system.wait(ASK_PAUSE)
        model, now = self.models[reference], self.system.now()
        learnt = "UNCHANGED"
        if model.hand_off is not None and model.handed_at is not None and model.status not in FINAL:
            word, reason = outcome.value, None
            if model.card is not None:
                word, reason, known_after = CARDS[model.card]
                right_amount = True
                word = word if now - model.handed_at >= timedelta(seconds=known_after) else "PENDING"
            learnt = model.learn(len(model.attempts), word, right_amount, reason, now, asked=True)
            self.seen[learnt] += 1
        status = self.expect(
            "PAYMENT_AMOUNT_MISMATCH" if learnt == "MISMATCH" else None,
            lambda: self.system.verify(reference, outcome, right_amount),
        )
        assert status in (None, model.seen(now)[0])

    @rule(reference=references, outcome=strategies.outcomes)
    def simulate(self, reference: str, outcome: str) -> None:
        model, now = self.models[reference], self.system.now()
        refusal = None
        if model.environment is Environment.LIVE:
            refusal = "PAYMENT_NOT_FOUND"
        elif model.seen(now)[0] in FINAL:
            refusal = "PAYMENT_ALREADY_FINAL"
        self.expect(refusal, lambda: self.system.simulate(reference, outcome))
        if refusal is None:
            model.move(outcome, "SIMULATED")

    @rule()
    def sweep(self) -> None:
        for model in self.models.values():
            model.expire(self.system.now())
        self.system.sweep()

    @invariant()
    def agrees_with_the_model(self) -> None:
        now = self.system.now()
        for reference, model in self.models.items():
            facts = self.system.facts(reference)
            self._check_identity(reference, model, facts.payment)
            seen = (facts.payment.status.value, facts.payment.failure_reason)
            assert seen == model.seen(now), f"{seen} is seen, foreseen {model.seen(now)}"
            assert facts.payment.gateway == model.gateway
            assert facts.last_decline == model.declined, "a decline was lost or invented"
            assert facts.anomalies == model.anomalies, "an anomaly was lost or invented"
            assert len(facts.hand_offs) <= 1, "two hand-offs were given out"
            assert facts.hand_offs == ((model.hand_off,) if model.hand_off else ())
            assert facts.charges <= 1, "two charges were started"
            self.seen.update(facts.anomalies)
            self.seen.update(f"{t.from_status.value} {t.trigger.value}" for t in facts.transitions)
            self._check_history(model, facts)

    def _check_identity(self, reference: str, model: Model, payment: Payment) -> None:
        identity = (
            payment.reference,
            payment.business_id,
            payment.environment,
            payment.amount,
            payment.currency,
            payment.created_at,
            payment.expires_at,
            payment.idempotency_key,
        )
        assert self.first.setdefault(reference, identity) == identity, "an immutable fact changed"
        assert identity[:1] + identity[2:5] == (reference, model.environment, model.amount, "NGN")
        assert payment.expires_at == model.expires
        if payment.status.value in FINAL:
            assert payment.settled_at is not None
            assert self.ended.setdefault(reference, payment) == payment, "a final payment changed"

    def _check_history(self, model: Model, facts: Facts) -> None:
        durable = [transition.to_status.value for transition in facts.transitions]
        assert durable == model.path, f"the history is {durable}, foreseen {model.path}"
        numbers = tuple(range(1, len(durable) + 1))
        assert tuple(transition.sequence for transition in facts.transitions) == numbers, "the sequence has a gap"
        before = ["INITIATED", *durable]
        assert [transition.from_status.value for transition in facts.transitions] == before[:-1]
        words = tuple((number, f"payment.{status.lower()}") for number, status in zip(numbers, durable, strict=True))
        more = tuple((len(words) + place, name) for place, name in enumerate(model.notices, 1))
        assert facts.events == words + more, "there is not exactly one event per transition and per news"
        assert facts.delivered == tuple(number for number, _ in words + more), "an event has not exactly one delivery"
        self.seen.update(model.notices)


def payment_machine(make_system: Callable[[], PaymentSystem]) -> type[PaymentMachine]:
    """The machine over systems that `make_system` makes, one for each run."""

    class SystemMachine(PaymentMachine):
        seen: ClassVar[Counter[str]] = Counter()

    SystemMachine.make_system = staticmethod(make_system)
    return SystemMachine
