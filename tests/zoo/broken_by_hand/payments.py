"""Services written by hand with one thing wrong each: payments."""

from datetime import timedelta
from typing import Any

from tests.zoo.by_hand import FINAL, HOUR, Handmade
from tests.zoo.hand_http import Reply, Row


class ReopensFinalPayments(Handmade):
    """A second simulated outcome replaces the first."""

    machine = "payments"

    def simulate(self, reference: str) -> Reply:
        payment = self.payments.get(reference)
        if payment is not None and payment["status"] in FINAL:
            payment["status"] = "INITIATED"
        return super().simulate(reference)


class TakesNinetyNineKobo(Handmade):
    """The smallest amount is off by one."""

    machine = "payments"

    def is_amount(self, amount: Any) -> bool:
        return super().is_amount(amount) or amount == 99


class TakesDecimals(Handmade):
    """5000.0 is taken for 5000."""

    machine = "payments"

    def is_amount(self, amount: Any) -> bool:
        return isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 100 and amount % 1 == 0


class TakesTrueForAnAmount(Handmade):
    """Amounts are checked with isinstance, so that booleans are integers."""

    machine = "payments"

    def is_amount(self, amount: Any) -> bool:
        return isinstance(amount, int) and (amount >= 100 or amount is True)


class ChargesAfterTheHour(Handmade):
    """The checkout window never closes."""

    machine = "payments"

    def is_too_late(self, payment: Row) -> bool:
        return False


class ChargesAMinuteLonger(Handmade):
    """The window is open at its end: one minute too long."""

    machine = "payments"

    def is_too_late(self, payment: Row) -> bool:
        return bool(self.now >= payment["began"] + HOUR + timedelta(minutes=1))


class SimulatesLivePayments(Handmade):
    """The simulator is offered for LIVE payments."""

    machine = "payments"

    def lists_simulator(self, payment: Row) -> bool:
        return True


class TellsThePayerTheEmail(Handmade):
    """The payer's view carries the customer's e-mail address."""

    machine = "payments"

    def public(self, reference: str) -> Reply:
        status, data = super().public(reference)
        return status, data | {"customerEmail": self.payments[reference]["customerEmail"]}


class GuessesTheOutcomeOfSilence(Handmade):
    """A payment whose provider has not answered is called failed."""

    machine = "payments"

    def verify(self, reference: str) -> Reply:
        status, data = super().verify(reference)
        if data["status"] == "PENDING":
            self.move(self.payments[reference], "FAILED")
        return status, data | {"status": self.payments[reference]["status"]}
