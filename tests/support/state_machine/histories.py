"""Histories of payments told by hand: between them every refusal, move and anomaly that the payment machine foresees.

A search meets most of them by chance; these are met each time, and each is checked step by step as in a search.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from payagg_testing.state_machine.gateway_model import OVERLAP, PROVES, SETTLING
from payagg_testing.state_machine.machine import PaymentMachine
from payagg_testing.state_machine.model import CHECKED_AFTER, CHECKS_WHEN_PAID, GATEWAYS, HOUR, SIMULATOR
from payagg_testing.state_machine.system import SILENCE, Said

from payagg.domain.report import Outcome
from payagg.domain.values import Environment

A, B = GATEWAYS
CARD, NO_ANSWER = "4242424242424242", "4000000000000119"
NO_TIME, MOMENT, CHECK_PAUSE = timedelta(0), timedelta(milliseconds=1), timedelta(seconds=2)
PAID, LOST, BACK = Said(Outcome.SUCCEEDED), Said(Outcome.FAILED), Said(Outcome.REVERSED)
DISPUTE, UNPAID = Said(Outcome.DISPUTED), Said(Outcome.UNPAID)
SHORT, PART_BACK = Said(Outcome.SUCCEEDED, "HALF"), Said(Outcome.REVERSED, "HALF")


class RuleScript:
    """The machine's rules as verbs with short forms; after each the system is compared with the model."""

    def __init__(self, machine: PaymentMachine) -> None:
        self.machine = machine

    def do(self, rule: str, **drawn: Any) -> Any:
        done = getattr(self.machine, rule)(**drawn)
        self.machine.agrees_with_the_model()
        self.machine.gateways_agree_with_the_model()
        return done

    def new(self, goes_to: str | None = None, live: bool = False, key: str | None = None, is_test: bool = False) -> Any:
        environment = Environment.LIVE if live else Environment.SANDBOX
        return self.do("initiate", amount=5000, environment=environment, key=key, is_test=is_test, goes_to=goes_to)

    def process(self, payment: str, gateway: str, card: str = CARD, refused: bool = False) -> None:
        self.do("process", reference=payment, gateway=gateway, card=card, refused=refused)

    def hear(self, payment: str, said: Said, **drawn: Any) -> None:
        """Of the first attempt, at A, in its environment and without an id, unless `drawn` says otherwise."""
        usual = {"number": 1, "gateway": A, "is_ours": True, "id": None, "state": None, "right_environment": True}
        self.do("report", reference=payment, said=said, **usual | drawn)

    def verify(self, payment: str, said: Said, after: timedelta = CHECK_PAUSE) -> None:
        self.do("verify", reference=payment, said=said, time=after)

    def simulate(self, payment: str, outcome: str) -> None:
        self.do("simulate", reference=payment, outcome=outcome)

    def reconcile(self, said: Said, after: timedelta) -> None:
        self.do("reconcile", time=after, said=said)

    def wait(self, time: timedelta) -> None:
        self.do("wait", time=time)

    def sweep(self, after: timedelta = NO_TIME) -> None:
        self.do("sweep", time=after)

    def gateway(self, slug: str, *story: str) -> None:
        self.do("move_gateway", slug=slug, story=story)


def a_key_is_one_payment_in_its_environment(told: RuleScript) -> None:
    first = told.new(key="order-1")
    told.new(key="order-1")
    live = told.new(key="order-1", live=True)
    told.simulate(live, "SUCCESS")
    told.simulate(first, "SUCCESS")
    told.new(key="order-1")
    told.simulate(first, "FAILED")
    told.process(first, A)
    told.process(live, SIMULATOR)


def the_simulator_ends_a_payment(told: RuleScript) -> None:
    for outcome in ("FAILED", "REVERSED"):
        told.simulate(told.new(), outcome)
    for card in (CARD, NO_ANSWER):
        payment = told.new()
        told.process(payment, SIMULATOR, card)
        told.verify(payment, SILENCE)


def an_hour_ends_what_was_never_begun(told: RuleScript) -> None:
    refused, pending, payment = told.new(), told.new(A), told.new()
    told.process(refused, A, refused=True)
    told.wait(HOUR)
    told.process(payment, A)
    told.process(pending, A)
    told.hear(refused, SHORT)
    told.simulate(payment, "SUCCESS")
    told.sweep()
    told.simulate(payment, "SUCCESS")
    told.hear(pending, LOST)


def reports_that_do_not_fit_move_nothing(told: RuleScript) -> None:
    payment = told.new(A)
    told.process(payment, B)
    told.verify(payment, LOST)
    told.verify(payment, SILENCE)
    told.verify(payment, SHORT)
    told.hear(payment, Said(Outcome.SUCCEEDED, "MORE"))
    told.hear(payment, PAID, gateway=B, is_ours=False)
    told.hear(payment, PAID, right_environment=False)
    told.hear(payment, SILENCE)


def a_failed_payment_is_paid_all_the_same(told: RuleScript) -> None:
    payment = told.new(A)
    told.hear(payment, LOST)
    told.hear(payment, PART_BACK, id="one")
    told.hear(payment, PAID)
    told.hear(payment, PART_BACK, id="two")
    told.hear(payment, DISPUTE, id="one", state="lost")


def what_was_refused_is_paid_and_asked_about(told: RuleScript) -> None:
    first, twice = told.new(), told.new()
    for payment in (first, twice):
        told.process(payment, A, refused=True)
    told.process(twice, B)
    told.hear(twice, PAID, number=2, gateway=B)
    for payment in (first, twice):
        told.hear(payment, PAID)
    told.reconcile(PAID, CHECKS_WHEN_PAID[0])
    told.gateway(A, "ROTATE")
    told.reconcile(BACK, CHECKS_WHEN_PAID[1])
    for payment in (first, twice):
        told.hear(payment, BACK, id="one")
    told.gateway(A, "DISABLE", "WAIT", "DELETE", "SWEEP")
    for _ in range(2):
        told.reconcile(SILENCE, CHECKS_WHEN_PAID[-1])


def a_refused_charge_that_was_paid_goes_back(told: RuleScript) -> None:
    payment = told.new()
    told.process(payment, A, refused=True)
    told.hear(payment, PAID)
    told.reconcile(BACK, CHECKS_WHEN_PAID[0])
    told.process(reversed_ := told.new(), A, refused=True)
    told.hear(reversed_, BACK)
    told.hear(reversed_, PAID)
    told.reconcile(LOST, CHECKS_WHEN_PAID[-1])


def money_goes_back_in_parts(told: RuleScript) -> None:
    payment = told.new(A)
    told.hear(payment, PAID)
    told.hear(payment, LOST)
    told.hear(payment, PART_BACK, id="one")
    told.hear(payment, PART_BACK, id="two")
    told.hear(payment, BACK, id="one")
    told.hear(told.new(A), BACK)


def what_was_known_before_the_success_is_told_then(told: RuleScript) -> None:
    payment = told.new(A)
    told.hear(payment, DISPUTE, id="one", state="opened")
    told.hear(payment, PART_BACK, id="one")
    told.hear(payment, PAID)


def money_that_never_counted_goes_back(told: RuleScript) -> None:
    """Of the figure that came beside the payment's amount: once, then it is the payment's own."""
    payment = told.new()
    told.process(payment, A)
    for said in (PAID, SHORT, BACK):
        told.hear(payment, said)
    for id in ("two", "three"):
        told.hear(payment, PART_BACK, id=id)


def two_charges_are_paid(told: RuleScript) -> None:
    more, more_back = Said(Outcome.SUCCEEDED, "MORE"), Said(Outcome.REVERSED, "MORE")
    for others in ([PAID], [BACK, BACK, PAID], [more_back, PAID], [more, BACK]):
        payment = told.new()
        told.process(payment, A, refused=True)
        told.process(payment, A)
        told.hear(payment, PAID, number=2)
        for other in others:
            told.hear(payment, other)


def a_final_payment_is_asked_about_seldom(told: RuleScript) -> None:
    payment = told.new(A)
    told.verify(payment, PAID)
    told.verify(payment, BACK, HOUR - CHECK_PAUSE)
    told.verify(payment, DISPUTE, HOUR)
    told.verify(payment, LOST)
    told.reconcile(BACK, CHECKS_WHEN_PAID[0])


def the_asking_ends(told: RuleScript) -> None:
    told.new(A)
    for after in (MOMENT, CHECKED_AFTER[0]):
        told.reconcile(SILENCE, after)
    told.reconcile(SILENCE, CHECKED_AFTER[-1])
    told.new(A)
    told.reconcile(UNPAID, CHECKED_AFTER[-1])


def a_suspended_business_takes_no_money(told: RuleScript) -> None:
    payment = told.new()
    told.do("set_standing", is_active=False)
    told.process(payment, A)
    told.do("set_standing", is_active=True)
    told.process(payment, A)


def a_test_payment_knows_the_simulator_alone(told: RuleScript) -> None:
    payment = told.new(is_test=True)
    told.process(payment, A)
    told.process(payment, SIMULATOR)


def a_gateway_drains_and_is_deleted_with_a_charge_open(told: RuleScript) -> None:
    asked, told_of, silent = told.new(A), told.new(A), told.new(A)
    told.gateway(A, "ENABLE", "CREATE", "DELETE", "DISABLE", "DISABLE", "DELETE")
    told.wait(MOMENT)
    told.process(told.new(), A)
    told.gateway(A, "WAIT", "DELETE", "DELETE", "SWEEP")
    told.process(told.new(), A)
    told.hear(told_of, PAID)
    told.verify(asked, PAID)
    told.gateway(A, "CREATE", "ENABLE")
    told.verify(silent, PAID)
    told.sweep()
    told.hear(told_of, DISPUTE, id="one", state="opened")
    told.sweep(PROVES)
    told.hear(told_of, DISPUTE, id="two", state="opened")


def a_gateway_is_retired_while_the_window_ends(told: RuleScript) -> None:
    told.new()
    told.gateway(B, "DISABLE", "WAIT", "DELETE", "SWEEP")
    told.gateway(B, "DISABLE", "WAIT", "DELETE", "SWEEP")


def without_any_gateway_nothing_live_begins(told: RuleScript) -> None:
    for slug in GATEWAYS:
        told.gateway(slug, "DISABLE")
    told.new(live=True)


def secrets_of_a_deleted_gateway_serve_no_longer_than_the_asking(told: RuleScript) -> None:
    payment = told.new(A)
    told.gateway(A, "DISABLE", "WAIT", "DELETE")
    told.sweep(SETTLING)
    told.verify(payment, PAID)
    for _ in range(2):
        told.reconcile(PAID, HOUR)
    told.reconcile(PAID, HOUR * 24)


def another_account_knows_nothing_of_the_charge(told: RuleScript) -> None:
    payment, silent = told.new(A), told.new(A)
    told.gateway(A, "ROTATE")
    told.verify(payment, PAID)
    told.hear(payment, PAID)
    told.reconcile(UNPAID, CHECKED_AFTER[-1])
    told.wait(OVERLAP)
    told.hear(silent, PAID)


# Every function above that is told one.
HISTORIES: list[Callable[[RuleScript], None]] = [
    one for one in list(globals().values()) if getattr(one, "__annotations__", {}).get("told") is RuleScript
]


def tell(machine: type[PaymentMachine], *histories: Callable[[RuleScript], None]) -> None:
    """Each over a system of its own; raises AssertionError where the system and the model differ."""
    for history in histories or HISTORIES:
        one = machine()
        try:
            history(RuleScript(one))
        finally:
            one.teardown()
