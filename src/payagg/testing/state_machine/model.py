"""One payment as the requirements see it, in their own words: no rule of the domain is imported here, so a mistake
would have to be made twice to pass."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from payagg.domain.values import Environment

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
    status: str = "INITIATED"
    reason: str | None = None
    gateway: str | None = None
    hand_off: str | None = None
    handed_at: datetime | None = None
    card: str | None = None
    declined: str | None = None  # what asking the provider said of the last card
    paid: int | None = None  # the attempt whose success was believed; None also when it was simulated
    attempts: list[str] = field(default_factory=list)
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

    def refusal_of_process(self, now: datetime, gateway: str, refused: bool, takes_money: bool) -> str | None:
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
        unservable = gateway == SIMULATOR and self.environment is Environment.LIVE
        return "GATEWAY_NOT_AVAILABLE" if unservable or refused else None
