"""One payment as the requirements see it, in their own words: no rule of the domain is imported here, so a mistake
would have to be made twice to pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from payagg.domain.report import Outcome
from payagg.domain.values import Environment
from payagg_testing.state_machine.gateway_model import GatewayModel
from payagg_testing.state_machine.system import Said

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
    "PARTIAL_REFUND": "payment.refunded",
    "DISPUTE": "payment.disputed",
    "MISMATCH": "payment.attention",
    "NO_EVIDENCE": "payment.attention",
}
OF_PAID = ("LATE_REVERSAL", "PARTIAL_REFUND", "DISPUTE")
PAID_LATE = ("LATE_SUCCESS", "SECOND_CHARGE")
LOST = ("lost", "accepted")  # states of a dispute after which its money is gone
NEWS = (*LANDS_ON, "DISPUTED")  # reports that say something about money
# A charge is asked about at these times after its hand-off.
CHECKED_AFTER = tuple(timedelta(minutes=m) for m in (1, 3, 10, 30)) + tuple(HOUR * h for h in (1, 3, 6, 12, 24, 48, 72))
LAST_AGAIN = HOUR * 24  # for so long, and once at least, the last check is made again each hour until it is answered
# What was paid is asked about at these times after that became known here.
CHECKS_WHEN_PAID = tuple(timedelta(days=days) for days in (1, 7, 30, 90, 180))
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
class Fact:
    """What must not move the payment and must not be lost. `kobo` is what it is about; the merchant is told once."""

    kind: str
    number: int  # of the attempt
    said: Said
    kobo: int
    is_told: bool = False


@dataclass
class Unsent:
    """A charge that its payer was never sent to, known to be paid `since`."""

    since: datetime
    next_check: datetime | None = None
    asked_at: datetime | None = None


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
    paid: int | None = None  # the attempt whose success or reversal was believed; 0 when it was simulated
    confirmed: set[int] = field(default_factory=set)  # attempts that a provider said were paid
    ended_at: datetime | None = None
    asked_at: datetime | None = None  # when the provider was asked last
    confirmed_at: datetime | None = None  # when the charge of the hand-off was first known to be paid
    next_check: datetime | None = None  # while there is one, the attempt of the hand-off is open
    unsent: dict[int, Unsent] = field(default_factory=dict)  # by the attempt's number
    attempts: list[str] = field(default_factory=list)
    accounts: list[GatewayModel | None] = field(default_factory=list)  # where each attempt was made; None: simulator
    opened_with: list[int] = field(default_factory=list)  # the gateway's account then; 0: simulator
    path: list[str] = field(default_factory=list)
    anomalies: set[str] = field(default_factory=set)
    facts: list[Fact] = field(default_factory=list)  # each once
    told: list[str] = field(default_factory=list)  # events in their order; each has its place as its number
    moved: list[int] = field(default_factory=list)  # the numbers of those that are changes of status

    def is_expired(self, now: datetime) -> bool:
        return self.reason == "EXPIRED" or (self.status == "INITIATED" and now >= self.expires)

    def visible_state(self, now: datetime) -> tuple[str, str | None]:
        return ("FAILED", "EXPIRED") if self.is_expired(now) else (self.status, self.reason)

    def move(self, status: str, now: datetime, reason: str | None = None) -> None:
        self.status, self.reason = status, reason if status == "FAILED" else None
        self.path.append(status)
        self.told.append(f"payment.{status.lower()}")
        self.moved.append(len(self.told))
        if status in FINAL:
            self.ended_at = now
        self.tell()

    def expire(self, now: datetime) -> None:
        if self.status == "INITIATED" and self.is_expired(now):
            self.move("FAILED", now, "EXPIRED")

    def is_at(self, number: int) -> bool:
        """Whether the payer was sent to attempt `number`: once one was, there are no more."""
        return self.hand_off is not None and number == len(self.attempts)

    def learn(self, number: int, said: Said, reason: str | None, now: datetime, asked: bool = False) -> str:
        """A report about attempt `number` of ours, an event or the answer to asking; the word for what it does."""
        outcome = said.outcome.value
        if asked and outcome not in NEWS and self.is_at(number):
            self.declined = None
        if outcome == "DISPUTED":
            is_of_mismatch = said.state in LOST and self.is_of_mismatch(number, said)
            return self.keep("DISPUTE", number, said, 0 if is_of_mismatch else None)
        if outcome not in LANDS_ON or (outcome == "FAILED" and not self.is_at(number)):
            return "UNCHANGED"
        if outcome == "REVERSED" and said.share == "HALF":
            return self.give_back("PARTIAL_REFUND", number, said, now)
        is_open = self.visible_state(now)[0] not in FINAL
        if outcome == "REVERSED" and said.share == "MORE" and not (asked and is_open):
            self.expire(now)
            return self.give_back("LATE_REVERSAL", number, said, now)  # with a fee that the payer bore
        if said.share != "WHOLE":
            self.keep("MISMATCH", number, said)
            return "MISMATCH"
        if asked and outcome == "FAILED" and self.card is None and self.status not in FINAL and now < self.expires:
            self.declined = "DECLINED"
            return "DECLINED"
        self.expire(now)
        charges = self.charges()
        is_repeat = not charges.isdisjoint((number, 0))
        if self.status not in FINAL:
            self.gateway = self.attempts[number - 1]
            if outcome != "FAILED":
                self.paid = number
            self.move(LANDS_ON[outcome], now, reason)
            if outcome == "REVERSED" and self.attempts[number - 1] != SIMULATOR:
                self.confirmed.add(number)
                if self.is_at(number):
                    self.confirmed_at, self.next_check = now, None
                else:
                    self.unsent[number] = Unsent(now)
            done = "MOVED"
        elif outcome == "SUCCEEDED":
            done = "UNCHANGED" if is_repeat else self.keep("SECOND_CHARGE" if charges else "LATE_SUCCESS", number, said)
        elif outcome == "REVERSED":
            return self.give_back(LATE[outcome], number, said, now)
        elif self.status == LANDS_ON[outcome] or (charges and not is_repeat):
            return "UNCHANGED"  # a declined try says nothing about the one that paid
        else:
            return self.keep(LATE[outcome], number, said)
        if outcome == "SUCCEEDED":
            self.confirm(number, now)
        return done

    def confirm(self, number: int, now: datetime) -> None:
        """Attempt `number` is known to be paid."""
        if self.attempts[number - 1] != SIMULATOR:
            self.confirmed.add(number)
            if self.is_at(number):
                self.confirmed_at = self.confirmed_at or now
                self.plan(now)
            else:
                charge = self.unsent.setdefault(number, Unsent(now))
                charge.next_check = _ahead(charge.since, now, CHECKS_WHEN_PAID)

    def charges(self) -> set[int | None]:
        """The attempts that brought the payment's amount, as far as it is known; 0 for what was simulated."""
        return {self.paid, *(fact.number for fact in self.facts if fact.kind in PAID_LATE)} - {None}

    def is_of_mismatch(self, number: int, said: Said) -> bool:
        """Whether what went back is money that differed from the payment, which never counted: all that its charge
        brought, or the very figure that came beside the payment's amount and did not go back yet."""
        own = [fact for fact in self.facts if fact.number == number]
        others = [fact.said for fact in own if fact.kind == "MISMATCH"]
        came = [other for other in others if other.outcome is Outcome.SUCCEEDED]
        gone = [other for other in others if other.outcome is Outcome.REVERSED]
        if said.id is not None and any(other.id == said.id for other in gone):
            return True
        charges = self.charges()
        if not self.was_paid() or (charges and charges.isdisjoint((number, 0))):
            return said.kobo(self.amount) <= max((other.kobo(self.amount) for other in came), default=0)
        gone += [fact.said for fact in own if fact.kind == "DISPUTE" and fact.kobo == 0]
        times = [sum(other.share == said.share != "WHOLE" for other in side) for side in (came, gone)]
        return times[0] > times[1]

    def give_back(self, kind: str, number: int, said: Said, now: datetime) -> str:
        """Money of a charge that went back, whole or in part. Where one of two statements has no id they may be about
        the same money, and no more goes back than came. A reversal that moved the payment is one of them."""
        if self.is_of_mismatch(number, said):
            self.keep("MISMATCH", number, said)
            return "MISMATCH"
        charges = self.charges()
        # Nobody was told that it had come.
        if kind == "LATE_REVERSAL" and charges and charges.isdisjoint((number, 0)):
            self.keep("SECOND_CHARGE", number, said)
        if kind == "LATE_REVERSAL" and not charges and self.status == "FAILED":
            self.keep("LATE_SUCCESS", number, said)
            self.confirm(number, now)
        own = [fact for fact in self.facts if fact.number == number and fact.kind in OF_PAID]
        # Sent again, it is one; a dispute's id is none of a refund's.
        own = [fact for fact in own if said.id is None or fact.said.id != said.id or fact.kind == "DISPUTE"]
        disputes: dict[object, Fact] = {}
        for place, fact in enumerate(own):
            key = fact.said.id or place
            # That it was opened may be told after its end.
            if fact.kind == "DISPUTE" and not (fact.said.state == "opened" and key in disputes):
                disputes[key] = fact
        lost = [fact for fact in disputes.values() if fact.said.state in LOST]
        gone = sum(fact.kobo for fact in [*lost, *(fact for fact in own if fact.kind != "DISPUTE")])
        is_in_status = self.status == "REVERSED" and self.paid in (number, 0)
        gone += self.amount if is_in_status else 0
        is_named, kobo = said.id is not None, min(said.kobo(self.amount), self.amount)
        if said.id is not None and said.id.startswith("#") and gone >= self.amount:
            return "UNCHANGED"  # an event without an id, sent again
        if not is_named or is_in_status or any(fact.said.id is None for fact in own):
            if gone >= self.amount:
                return "UNCHANGED"
            if not is_named and gone and kind == "LATE_REVERSAL":
                kobo = self.amount - gone
        return self.keep(kind, number, said, kobo)

    def keep(self, kind: str, number: int, said: Said, kobo: int | None = None) -> str:
        """A fact about attempt `number`."""
        fact = Fact(kind, number, said, min(said.kobo(self.amount), self.amount) if kobo is None else kobo)
        self.anomalies.add(kind)
        if not any(replace(known, is_told=False) == fact for known in self.facts):
            self.facts.append(fact)
        self.tell()
        return "ANOMALY"

    def was_paid(self) -> bool:
        return self.status in ("SUCCESS", "REVERSED") or "LATE_SUCCESS" in self.anomalies

    def tell(self) -> None:
        """The merchant is told of each fact once it is news: of the late success before what it makes news."""
        is_paid = self.was_paid()
        for fact in sorted(self.facts, key=lambda fact: fact.kind != "LATE_SUCCESS"):
            is_news = fact.kind in NOTICES and (is_paid or fact.kind not in OF_PAID)
            if fact.kind == "MISMATCH" and fact.said.outcome.value != "SUCCEEDED":
                is_news = False  # no money came
            if is_news and not fact.is_told:
                fact.is_told = True
                self.told.append(NOTICES[fact.kind])

    def begin(self, gateway: str, account: GatewayModel | None) -> None:
        """An attempt at the gateway, through the account; None: the simulator, or one that is never changed."""
        self.attempts.append(gateway)
        self.accounts.append(account)
        self.opened_with.append(account.account if account is not None else 0)

    def hand_over(self, url: str, now: datetime, card: str | None) -> None:
        """The payer was sent to the last attempt."""
        self.hand_off, self.handed_at, self.gateway, self.card = url, now, self.attempts[-1], card
        self.next_check = now + CHECKED_AFTER[0]
        self.move("PENDING", now)

    def answer(self, said: Said, now: datetime) -> tuple[Said, str | None]:
        """What asking brings where a provider would say `said`, and the failure's reason. The simulator knows nothing
        but the test card."""
        if self.card is None or self.handed_at is None:
            return said, None
        word, reason, known_after = CARDS[self.card]
        is_known = now - self.handed_at >= timedelta(seconds=known_after)
        return Said(Outcome(word if is_known else "PENDING")), reason

    def can_be_asked(self) -> bool:
        """Whether there are credentials to ask with: those of the very gateway that the charge was made through."""
        return self.hand_off is not None and (self.accounts[-1] is None or self.accounts[-1].has_credentials)

    def may_verify(self, now: datetime) -> bool:
        """Whether a look at the payment asks its provider: of a final one at most once an hour, and once in a hundredth
        of its charge's age."""
        if self.status not in FINAL or self.handed_at is None:
            return self.hand_off is not None
        since = max(filter(None, (self.asked_at, self.ended_at)))
        return self.card is None and self.can_be_asked() and now >= since + max(HOUR, (now - self.handed_at) / 100)

    def look_pause(self, now: datetime) -> timedelta:
        """A wait after which a look at an open payment asks its provider again: a look may be spared it for a hundredth
        of the charge's age."""
        return (now - (self.handed_at or now)) / 50

    def ask(self, said: Said, now: datetime, *, is_planned: bool = False) -> tuple[str, bool]:
        """Asks the provider of the hand-off: what the answer does, and whether it says that nothing was paid. Another
        account knows nothing of the charge, and proves nothing."""
        if self.card is None or is_planned:
            self.asked_at = now
        account = self.accounts[-1]
        if account is not None and account.account != self.opened_with[-1]:
            return "UNCHANGED", False
        said, reason = self.answer(said, now)
        return self.learn(len(self.attempts), said, reason, now, asked=True), said.outcome.value == "UNPAID"

    def ask_if_due(self, said: Said, now: datetime) -> str | None:
        """The reconciler's turn, should one be due, and the word for what the answer does. The last one ends a payment
        of which nothing was paid."""
        if not self.is_due(now):
            return None
        learnt, is_unpaid = None, False
        if self.is_past_asking():
            self.next_check = None
            return None
        asked_before, is_asked = self.asked_at, self.can_be_asked()
        if is_asked:
            learnt, is_unpaid = self.ask(said, now, is_planned=True)
        self.asked_at = now
        since, schedule = self.plan(now)
        end = since + schedule[-1]
        is_again = (asked_before or since) < end or now < end + LAST_AGAIN
        if self.next_check is None and not is_asked and is_again:
            self.next_check = now + HOUR
        if self.next_check is None and self.status == "PENDING":
            if is_unpaid:
                self.move("FAILED", now, "EXPIRED")
            elif learnt != "MISMATCH" or said.outcome is not Outcome.SUCCEEDED:  # which people know
                self.keep("NO_EVIDENCE", len(self.attempts), Said(Outcome.PENDING))
        return learnt

    def is_due(self, now: datetime) -> bool:
        """Whether the charge of the hand-off is to be asked about."""
        return self.handed_at is not None and self.next_check is not None and now >= self.next_check

    def due_unsent(self, now: datetime) -> list[int]:
        return [number for number, one in self.unsent.items() if one.next_check is not None and now >= one.next_check]

    def ask_unsent(self, number: int, said: Said, now: datetime) -> None:
        """As `ask_if_due`, about a charge that its payer was never sent to."""
        charge, account = self.unsent[number], self.accounts[number - 1]
        assert account is not None
        if account.has_credentials and account.account == self.opened_with[number - 1]:
            self.learn(number, said, None, now, asked=True)
        end = charge.since + CHECKS_WHEN_PAID[-1]
        is_again = (charge.asked_at or charge.since) < end or now < end + LAST_AGAIN
        again = now + HOUR if is_again and not account.has_credentials else None
        charge.asked_at, charge.next_check = now, _ahead(charge.since, now, CHECKS_WHEN_PAID) or again

    def plan(self, now: datetime) -> tuple[datetime, tuple[timedelta, ...]]:
        """The next ask after `now`: seldom once the charge is known to be paid. The schedule and its begin."""
        assert self.handed_at is not None
        since, schedule = (
            (self.confirmed_at, CHECKS_WHEN_PAID) if self.confirmed_at else (self.handed_at, CHECKED_AFTER)
        )
        self.next_check = _ahead(since, now, schedule) if not self.is_past_asking() else None
        return since, schedule

    def is_past_asking(self) -> bool:
        """A final payment may be paid by the hand-off, too, and what was paid may be refunded; the simulator pays
        nobody late."""
        return self.status in FINAL and self.card is not None

    def is_open_at(self, gateway: GatewayModel) -> bool:
        """Whether it is still to be found out through the gateway what became of the payment."""
        return self.next_check is not None and self.confirmed_at is None and self.accounts[-1] is gateway

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


def _ahead(since: datetime, now: datetime, schedule: Sequence[timedelta]) -> datetime | None:
    """The next instant of a schedule that began at `since`."""
    return next((since + after for after in schedule if since + after > now), None)
