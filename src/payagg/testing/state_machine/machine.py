"""A rule-based state machine that drives any payment system beside a plain model and compares them after each step.

Run it with `run_state_machine_as_test(payment_machine(make_system))`.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import MultipleResults, invariant, multiple, precondition, rule

from payagg.domain.payment import Payment
from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg.testing import strategies
from payagg.testing.state_machine.base import REFERENCES
from payagg.testing.state_machine.gateway_model import GatewayModel
from payagg.testing.state_machine.gateway_rules import GatewayRules
from payagg.testing.state_machine.model import ASKED_AFTER, CARDS, FINAL, GATEWAYS, HOUR, NEWS, SIMULATOR, Model
from payagg.testing.state_machine.system import Facts, PaymentSystem

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
PAYMENTS_MAX = 4
ASK_PAUSE = timedelta(seconds=2)  # a provider is asked at most this often about one payment


class PaymentMachine(GatewayRules):
    """Samples calls, reports and waits over a few payments of one business."""

    # Few payments, so that a run is long enough for things to happen to each.
    @precondition(lambda self: len(self.models) < PAYMENTS_MAX)
    @rule(
        target=REFERENCES,
        amount=strategies.amounts,
        environment=strategies.environments,
        key=st.sampled_from([None, None, "order-1", "order-2"]),
        is_test=st.sampled_from([False] * 5 + [True]),
        goes_to=st.sampled_from([None, *GATEWAYS]),
    )
    def initiate(
        self, amount: int, environment: Environment, key: str | None, is_test: bool, goes_to: str | None
    ) -> str | MultipleResults[str]:
        """A test payment is a SANDBOX payment whatever was drawn, and shares the keys of the others there. The
        payer `goes_to` a gateway at once, or later."""
        now = self.system.now()
        environment = Environment.SANDBOX if is_test else environment
        original = self.keys.get((environment, key)) if key is not None else None
        refusal = None
        if original is not None:
            refusal = "DUPLICATE_PAYMENT" if self.models[original].seen(now)[0] in FINAL else None
        elif environment is Environment.LIVE and not any(map(self.is_active, GATEWAYS)):
            refusal = "NO_GATEWAY_AVAILABLE"
        reference = self.expect(
            refusal,
            lambda: (
                self.system.initiate_test(amount, key) if is_test else self.system.initiate(amount, environment, key)
            ),
        )
        if reference is None:
            return multiple()
        if original is not None:
            assert reference == original, "a replay made a second payment"
            return multiple()
        assert reference not in self.models, "a reference was given out twice"
        gateway = SIMULATOR if is_test else None
        self.models[reference] = Model(amount, environment, now + HOUR, is_test, gateway=gateway)
        self.keys[environment, key] = reference
        if goes_to is not None:
            self.process(reference, goes_to, None, False)
        return reference

    @rule(time=strategies.waits)
    def wait(self, time: timedelta) -> None:
        self.system.wait(time)

    @rule(is_active=st.sampled_from([True, True, True, True, True, False]))
    def set_standing(self, is_active: bool) -> None:
        self.takes_money = is_active
        self.system.set_standing(is_active)

    @rule(
        reference=REFERENCES,
        gateway=st.sampled_from([*GATEWAYS, SIMULATOR]),
        card=st.sampled_from(sorted(CARDS)),
        refused=st.sampled_from([False, False, True]),
    )
    def process(self, reference: str, gateway: str, card: str | None, refused: bool) -> None:
        self.look_at_options(reference)
        model, now = self.models[reference], self.system.now()
        refused = refused and gateway != SIMULATOR
        is_active = self.is_active(gateway)
        refusal = model.refusal_of_process(
            now, gateway, is_active=is_active, refused=refused, takes_money=self.takes_money
        )
        is_first = model.hand_off is None
        card = card if gateway == SIMULATOR else None
        url = self.expect(refusal, lambda: self.system.process(reference, gateway, card, refused))
        if url is not None and not is_first:
            assert url == model.hand_off, "a repeat of process gave another hand-off"
            return
        is_refused_there = refused and self.takes_money and model.may_choose(gateway, is_active)
        if url is not None or (refusal == "GATEWAY_NOT_AVAILABLE" and is_refused_there):
            model.attempts.append(gateway)
            model.accounts.append(self.gateways[gateway][-1] if gateway != SIMULATOR else None)
        if url is not None:
            model.hand_over(url, now, card)

    @rule(
        reference=REFERENCES,
        number=st.integers(1, 2),
        gateway=st.sampled_from(GATEWAYS),
        is_ours=st.sampled_from([True, True, False]),
        outcome=WORDS,
        right_amount=st.sampled_from([True, True, False]),
        right_environment=st.sampled_from([True] * 5 + [False]),
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
        refusal: str | None = None
        foreseen: str | None
        is_taken = model.attempts[number - 1 : number] == [gateway]
        account = model.accounts[number - 1] if is_taken else self.gateways[gateway][-1]
        if account is not None and not account.has_credentials:
            refusal, foreseen = "INVALID_WEBHOOK_SIGNATURE", None
        elif outcome.value not in NEWS:
            foreseen = "UNCHANGED"
        elif not right_environment:
            model.anomalies.add("WRONG_ENVIRONMENT")
            foreseen = "ANOMALY"
        elif not is_taken:
            model.anomalies.add("WRONG_PROVIDER")
            foreseen = "ANOMALY"
        else:
            foreseen = model.learn(number, outcome.value, right_amount, None, self.system.now())
        done = self.expect(
            refusal, lambda: self.system.report(reference, number, gateway, outcome, right_amount, environment)
        )
        assert done == foreseen, f"the report was {done}, foreseen {foreseen}"
        self._saw(foreseen, account)

    @rule(reference=REFERENCES, outcome=WORDS, right_amount=st.sampled_from([True, True, False]))
    def verify(self, reference: str, outcome: Outcome, right_amount: bool) -> None:
        self.system.wait(ASK_PAUSE)
        model, now = self.models[reference], self.system.now()
        learnt, refusal = "UNCHANGED", None
        is_open = model.hand_off is not None and model.status not in FINAL
        if is_open and not model.can_be_asked():
            refusal = "GATEWAY_NOT_AVAILABLE"
        elif is_open:
            word, right_amount, reason = model.answer(outcome.value, right_amount, now)
            learnt = model.learn(len(model.attempts), word, right_amount, reason, now, asked=True)
            refusal = "PAYMENT_AMOUNT_MISMATCH" if learnt == "MISMATCH" else None
            self._saw(learnt, model.accounts[-1])
        status = self.expect(refusal, lambda: self.system.verify(reference, outcome, right_amount))
        assert status in (None, model.seen(now)[0])

    def _saw(self, done: str | None, account: GatewayModel | None) -> None:
        if done is not None:
            self.seen[done] += 1
        if done == "MOVED" and account is not None and account.deleted_at is not None:
            self.seen["MOVED through a deleted gateway"] += 1

    @rule(reference=REFERENCES, outcome=strategies.outcomes)
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

    @rule(
        time=st.sampled_from([*[timedelta(0)] * 3, ASKED_AFTER[0], ASKED_AFTER[-1]]),
        outcome=st.one_of(st.sampled_from([Outcome.UNPAID, Outcome.PENDING]), WORDS),
        right_amount=st.sampled_from([True, True, False]),
    )
    def reconcile(self, time: timedelta, outcome: Outcome, right_amount: bool) -> None:
        """After a wait of its own: by chance, asking would rarely be due."""
        self.system.wait(time)
        now = self.system.now()
        for model in self.models.values():
            learnt = model.ask(outcome.value, right_amount, now)
            self._saw(learnt, model.accounts[-1] if model.accounts else None)
        self.system.reconcile(outcome, right_amount)

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
