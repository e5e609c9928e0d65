"""One payment as the requirements see it, in their own words: no rule of the domain is imported here, so a mistake
would have to be made twice to pass."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from payagg.domain.values import Environment
from payagg.testing.state_machine.gateway_model import GatewayModel

GATEWAYS = ("machine-a", "machine-b")
SIMULATOR = "sandbox"
HOUR = timedelta(hours=1)
FINAL = ("SUCCESS", "FAILED", "REVERSED")
LANDS_ON = {"SUCCEEDED": "SUCCESS", "FAILED": "FAILED", "REVERSED": "REVERSED"}
# Anomalies that the merchant is told of, and by which event; a refund or a dispute is news of a paid payment only.
NOTICES = {
    "LATE_SUCCESS": "payment.late_success",
    "SECOND_CHARGE": "payment.late_success",
    "LATE_REVERSAL": "payment.refunded",
    "DISPUTE": "payment.disputed",
}
NEWS = (*LANDS_ON, "DISPUTED")  # reports that say something about money
# A charge is asked about at these times after its hand-off.
ASKED_AFTER = tuple(timedelta(minutes=m) for m in (1, 3, 10, 30)) + tuple(HOUR * h for h in (1, 3, 6, 12, 24, 48, 72))
LATE = {"SUCCEEDED": "LATE_SUCCESS", "FAILED": "LATE_FAILURE", "REVERSED": "LATE_REVERSAL"}
# Test card: outcome, failure reason, seconds until the outcome is known.
CARDS = {
    "4242424242424242": ("SUCCEEDED", None, 0),
    "4000000000000002": ("FAILED", "DECLINED", 0),
    "4000000000000259": ("REVERSED", None, 0),
    "4000000000000077": ("SUCCEEDED", None, 30),
    "4000000000000119": ("PENDING", None, 0),
}


@dataclass
class Model:
    """One payment as the requirements see it."""

    amount: int
    environment: Environment
    expires: datetime
    is_test: bool = False
    status: str = "INITIATED"
    reason: str | None = None
    gateway: str | None = None
    hand_off: str | None = None
    handed_at: datetime | None = None
    card: str | None = None
    declined: str | None = None  # what asking the provider said of the last card
    paid: int | None = None  # the attempt whose success was believed; None also when it was simulated
    next_ask: datetime | None = None  # while there is one, the attempt of the hand-off is open
    attempts: list[str] = field(default_factory=list)
    accounts: list[GatewayModel | None] = field(default_factory=list)  # where each attempt was made; None: simulator
    path: list[str] = field(default_factory=list)
    anomalies: set[str] = field(default_factory=set)
    facts: set[tuple[str, int, bool]] = field(default_factory=set)  # the same fact of the same attempt is told once
    notices: list[str] = field(default_factory=list)

    def is_expired(self, now: datetime) -> bool:
        return self.reason == "EXPIRED" or (self.status == "INITIATED" and now >= self.expires)

    def seen(self, now: datetime) -> tuple[str, str | None]:
        return ("FAILED", "EXPIRED") if self.is_expired(now) else (self.status, self.reason)

    def move(self, status: str, reason: str | None = None) -> None:
        self.status, self.reason = status, reason if status == "FAILED" else None
        self.path.append(status)
        if status in ("SUCCESS", "REVERSED"):
            self.next_ask = None

    def expire(self, now: datetime) -> None:
        if self.status == "INITIATED" and self.is_expired(now):
            self.move("FAILED", "EXPIRED")

    def is_at(self, number: int) -> bool:
        """Whether the payer was sent to attempt `number`: once one was, there are no more."""
        return self.hand_off is not None and number == len(self.attempts)

    def learn(
        self, number: int, outcome: str, right_amount: bool, reason: str | None, now: datetime, asked: bool = False
    ) -> str:
        """A report about attempt `number` of ours, an event or the answer to asking; the word for what it does."""
        if asked and outcome not in NEWS:
            self.declined = None
        if outcome == "DISPUTED":
            self.keep("DISPUTE", number, right_amount)
            return "ANOMALY"
        if outcome not in LANDS_ON or (outcome == "FAILED" and not self.is_at(number)):
            return "UNCHANGED"
        if not right_amount:
            self.anomalies.add("MISMATCH")
            return "MISMATCH"
        if asked and outcome == "FAILED" and self.card is None and self.status not in FINAL and now < self.expires:
            self.declined = "DECLINED"
            return "DECLINED"
        self.expire(now)
        if self.status in FINAL:
            is_paid_twice = self.status == "SUCCESS" and self.paid not in (None, number)
            if self.status == LANDS_ON[outcome] and not is_paid_twice:
                return "UNCHANGED"
            self.keep("SECOND_CHARGE" if self.status == LANDS_ON[outcome] else LATE[outcome], number, True)
            return "ANOMALY"
        self.gateway, self.paid = self.attempts[number - 1], number
        self.move(LANDS_ON[outcome], reason)
        return "MOVED"

    def keep(self, kind: str, number: int, right_amount: bool) -> None:
        """A late fact about attempt `number`; the merchant hears of it once."""
        self.anomalies.add(kind)
        is_known, is_paid = (kind, number, right_amount) in self.facts, self.status == "SUCCESS"
        self.facts.add((kind, number, right_amount))
        if kind in NOTICES and not is_known and (is_paid or kind not in ("LATE_REVERSAL", "DISPUTE")):
            self.notices.append(NOTICES[kind])

    def hand_over(self, url: str, now: datetime, card: str | None) -> None:
        """The payer was sent to the last attempt."""
        self.hand_off, self.handed_at, self.gateway, self.card = url, now, self.attempts[-1], card
        self.next_ask = now + ASKED_AFTER[0]
        self.move("PENDING")

    def answer(self, outcome: str, right_amount: bool, now: datetime) -> tuple[str, bool, str | None]:
        """What asking brings where a provider would say `outcome`: word, whether the amount is right, failure reason.
        The simulator knows nothing but the test card."""
        if self.card is None or self.handed_at is None:
            return outcome, right_amount, None
        word, reason, known_after = CARDS[self.card]
        is_known = now - self.handed_at >= timedelta(seconds=known_after)
        return (word if is_known else "PENDING"), True, reason

    def can_be_asked(self) -> bool:
        """Whether there are credentials to ask with: those of the very gateway that the charge was made through."""
        return self.hand_off is not None and (self.accounts[-1] is None or self.accounts[-1].has_credentials)

    def ask(self, outcome: str, right_amount: bool, now: datetime) -> str | None:
        """The reconciler's turn, should one be due, and the word for what the answer does. The last one ends a payment
        of which nothing was paid."""
        if self.handed_at is None or self.next_ask is None or now < self.next_ask:
            return None
        word, learnt = None, None
        if not self.is_past_asking() and self.can_be_asked():
            word, right_amount, reason = self.answer(outcome, right_amount, now)
            learnt = self.learn(len(self.attempts), word, right_amount, reason, now, asked=True)
        ahead = [self.handed_at + after for after in ASKED_AFTER if self.handed_at + after > now]
        self.next_ask = ahead[0] if ahead and not self.is_past_asking() else None
        if self.next_ask is None and self.status == "PENDING":
            if word == "UNPAID":
                self.move("FAILED", "EXPIRED")
            else:
                self.anomalies.add("NO_EVIDENCE")
        return learnt

    def is_past_asking(self) -> bool:
        """A payment that failed may have been paid all the same; the simulator pays nobody late."""
        return self.status in ("SUCCESS", "REVERSED") or (self.status in FINAL and self.card is not None)

    def may_choose(self, gateway: str, is_active: bool) -> bool:
        """Whether the payer finds the gateway among the options."""
        if gateway == SIMULATOR:
            return self.environment is Environment.SANDBOX
        return is_active and not self.is_test

    def refusal_of_process(
        self, now: datetime, gateway: str, *, is_active: bool, refused: bool, takes_money: bool
    ) -> str | None:
        if self.is_expired(now):
            return "PAYMENT_EXPIRED"
        if self.status in FINAL:
            return "PAYMENT_ALREADY_PROCESSED"
        if now >= self.expires:
            return "PAYMENT_EXPIRED"
        if not takes_money:
            return "GATEWAY_NOT_AVAILABLE"
        if self.hand_off is not None:
            return None
        return "GATEWAY_NOT_AVAILABLE" if refused or not self.may_choose(gateway, is_active) else None
