"""A rule-based state machine that drives any payment system beside a plain model and compares them after each step.

Run it with `run_state_machine_as_test(payment_machine(make_system))`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import MultipleResults, multiple, precondition, rule

from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg_testing import strategies
from payagg_testing.state_machine.agreement import PaymentAgreement
from payagg_testing.state_machine.base import REFERENCES
from payagg_testing.state_machine.gateway_model import GatewayModel
from payagg_testing.state_machine.model import (
    CARDS,
    CHECKED_AFTER,
    CHECKS_WHEN_PAID,
    FINAL,
    GATEWAYS,
    HOUR,
    NEWS,
    SIMULATOR,
    Model,
)
from payagg_testing.state_machine.system import PaymentSystem, Said

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
SAID = st.builds(Said, WORDS, st.sampled_from(["WHOLE", "WHOLE", "WHOLE", "HALF", "MORE"]))
ASKED = SAID.filter(lambda said: said.outcome is not Outcome.DISPUTED)  # events and lists alone tell of disputes
IDS = st.sampled_from([None, "one", "two"])
STATES = st.sampled_from([None, "opened", "won", "lost", "accepted"])
PAYMENTS_MAX = 4
MOMENT = timedelta(milliseconds=1)  # no two facts at one instant: ids are ordered by time
CHECK_PAUSE = timedelta(seconds=2)  # a provider is asked at most this often about one payment


class PaymentMachine(PaymentAgreement):
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
            refusal = "DUPLICATE_PAYMENT" if self.models[original].visible_state(now)[0] in FINAL else None
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
            model.begin(gateway, self.gateways[gateway][-1] if gateway != SIMULATOR else None)
        if url is not None:
            model.hand_over(url, now, card)

    @rule(
        reference=REFERENCES,
        number=st.integers(1, 2),
        gateway=st.sampled_from(GATEWAYS),
        is_ours=st.sampled_from([True, True, False]),
        said=SAID,
        id=IDS,
        state=STATES,
        right_environment=st.sampled_from([True] * 5 + [False]),
    )
    def report(
        self,
        reference: str,
        number: int,
        gateway: str,
        is_ours: bool,
        said: Said,
        id: str | None,
        state: str | None,
        right_environment: bool,
    ) -> None:
        """`is_ours` names an attempt that was made, where there is one; any other gateway may miss. Refunds and
        disputes have the `id`, a dispute the `state` as well."""
        self.system.wait(MOMENT)
        model, now, outcome = self.models[reference], self.system.now(), said.outcome
        if outcome in (Outcome.REVERSED, Outcome.DISPUTED):
            said = replace(said, id=id, state=state if outcome is Outcome.DISPUTED else None)
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
        opened_with = model.opened_with[number - 1] if is_taken else self.gateways[gateway][-1].account
        if account is not None and not account.proves(opened_with, now):
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
            # Each event of a refund without an id is one of its own.
            self.unnamed += 1
            is_unnamed = outcome is Outcome.REVERSED and said.id is None
            foreseen = model.learn(number, replace(said, id=f"#{self.unnamed}") if is_unnamed else said, None, now)
        done = self.expect(refusal, lambda: self.system.report(reference, number, gateway, said, environment))
        assert done == foreseen, f"the report was {done}, foreseen {foreseen}"
        self._saw(foreseen, account)

    @rule(
        reference=REFERENCES,
        said=st.one_of(st.just(Said(Outcome.FAILED)), ASKED),
        time=st.sampled_from([CHECK_PAUSE, CHECK_PAUSE, HOUR]),
    )
    def verify(self, reference: str, said: Said, time: timedelta) -> None:
        """After a wait of its own: a final payment's provider is asked at most once an hour."""
        model = self.models[reference]
        self.system.wait(max(time, model.look_pause(self.system.now())))
        now, refusal, is_open = self.system.now(), None, model.status not in FINAL
        if model.may_verify(now) and not model.can_be_asked():
            refusal = "GATEWAY_NOT_AVAILABLE"
        elif model.may_verify(now):
            learnt, _ = model.ask(said, now)
            refusal = "PAYMENT_AMOUNT_MISMATCH" if learnt == "MISMATCH" and is_open else None
            self._saw(learnt, model.accounts[-1])
            if not is_open:
                self.seen["a final payment is verified"] += 1
        status = self.expect(refusal, lambda: self.system.verify(reference, said))
        assert status in (None, model.visible_state(now)[0])

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
        elif model.visible_state(now)[0] in FINAL:
            refusal = "PAYMENT_ALREADY_FINAL"
        self.expect(refusal, lambda: self.system.simulate(reference, outcome))
        if refusal is None:
            model.paid = None if outcome == "FAILED" else 0
            model.move(outcome, now, "SIMULATED")

    @rule(
        time=st.sampled_from(
            [*[MOMENT] * 3, CHECKED_AFTER[0], CHECKED_AFTER[-1], CHECKS_WHEN_PAID[0], CHECKS_WHEN_PAID[-1]]
        ),
        said=st.one_of(st.sampled_from([Said(Outcome.UNPAID), Said(Outcome.PENDING)]), ASKED),
    )
    def reconcile(self, time: timedelta, said: Said) -> None:
        """After a wait of its own: by chance, asking would rarely be due."""
        self.system.wait(time)
        now = self.system.now()
        unsent = {reference: model.due_unsent(now) for reference, model in self.models.items()}
        if any(len(due) > 1 or (due and self.models[one].is_due(now)) for one, due in unsent.items()):
            said = Said(Outcome.PENDING)  # no order is promised of two charges of one payment
        for reference, model in self.models.items():
            for number in unsent[reference]:
                model.ask_unsent(number, said, now)
                self.seen["what was paid and never handed off is asked about"] += 1
            is_paid = model.confirmed_at is not None
            learnt = model.ask_if_due(said, now)
            self._saw(learnt, model.accounts[-1] if model.accounts else None)
            if is_paid and learnt is not None:
                self.seen["what was paid is asked about"] += 1
        self.system.reconcile(said)


def payment_machine(make_system: Callable[[], PaymentSystem]) -> type[PaymentMachine]:
    """The machine over systems that `make_system` makes, one for each run."""

    class SystemMachine(PaymentMachine):
        seen: ClassVar[Counter[str]] = Counter()

    SystemMachine.make_system = staticmethod(make_system)
    return SystemMachine
