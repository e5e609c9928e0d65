"""What must hold of money after it came: refunds, disputes, second payments, and payments whose account is away.

Judged by what the bank did, as in invariants.py. INV9: of a payment that was paid each refund, each state of a dispute,
each late or second payment is told once, under the next number, in the order in which it became known; in the end ours
and the bank's kobo agree; what no event told is told by the next of the sparse asks.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from payagg_testing.state_machine.model import CHECKS_WHEN_PAID, NOTICES, OF_PAID

from lab.simulation.ledger import LaterFact, SimulatedCharge
from lab.simulation.world import SimulatedWorld
from payagg.domain.anomaly import Anomaly
from payagg.domain.payment import Payment

# Asks are spread by 25 minutes at most; then a sweep must come round, perhaps twice.
SLACK = timedelta(minutes=35)


class LaterMoney:
    """Watches one history together with Invariants, which calls it."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.ledger, self.state = world, world.ledger, world.store.state
        self._events: dict[tuple[str, int], str] = {}  # types, of those that retention has removed, too

    def on_commit(self) -> None:
        for key, event in self.state.events.items():
            known = self._events.setdefault(key, event.type)
            if known != event.type:
                self.world.fail("INV9", f"event {key[1]} of {key[0]} was {known} and is {event.type}")

    def on_anomaly(self, anomaly: Anomaly) -> None:
        payment = self.state.payments.get(anomaly.reference or "")
        if payment is None or anomaly.kind.value not in OF_PAID:
            return
        sometimes, status, settled = self.world.sometimes, payment.status.value, payment.settled_at
        if status in ("INITIATED", "PENDING"):
            sometimes["money goes back before its success is known"] += 1
        if status == "FAILED":
            sometimes["money of a FAILED payment goes back"] += 1
        is_sparse = settled is not None and self.world.clock.now() > settled + CHECKS_WHEN_PAID[0]
        if is_sparse and anomaly.source == "reconciler":
            sometimes["a sparse ask finds that money went back"] += 1

    def at_the_end(self, peace: datetime) -> None:
        for payment in self.state.payments.values():
            facts = [a for a in self.state.anomalies.values() if a.reference == payment.reference]
            facts.sort(key=lambda fact: fact.id)
            self._ensure_told(payment, facts)
            charges = [c for c in self.ledger.charges_of(payment.reference) if c.taken == payment.amount]
            for charge in charges:
                if self._is_paid(payment, facts) and not self.ledger.simulated[payment.reference]:
                    own = [f for f in facts if f.details.get("providerReference") == charge.reference]
                    self._ensure_known(payment, charge, own, peace)

    @staticmethod
    def _is_paid(payment: Payment, facts: Iterable[Anomaly]) -> bool:
        is_late = any(fact.kind.value == "LATE_SUCCESS" for fact in facts)
        return is_late or payment.status.value in ("SUCCESS", "REVERSED")

    def _ensure_told(self, payment: Payment, facts: list[Anomaly]) -> None:
        """The events of the payment are its changes of status and its facts, each under a number of its own."""
        reference, is_paid = payment.reference, self._is_paid(payment, facts)
        told = {
            n: f"payment.{t.to_status.value.lower()}" for (r, n), t in self.state.transitions.items() if r == reference
        }
        numbers = []
        for fact in facts:
            kind, number = fact.kind.value, fact.event_sequence
            is_news = kind in NOTICES and (is_paid or kind not in OF_PAID)
            if is_news and kind == "MISMATCH":
                is_news = fact.details["word"] == "succeeded"
            if is_news is (number is None):
                self.world.fail("INV9", f"{kind} of {reference} is told as {number}, news: {is_news}")
            if number is not None:
                if number in told:
                    self.world.fail("INV9", f"event {number} of {reference} tells {told[number]} and {kind}")
                told[number] = NOTICES.get(kind, kind)
                numbers += [number] if kind in OF_PAID else []
        if numbers != sorted(numbers):
            self.world.fail("INV9", f"what became of the money of {reference} is told in the order {numbers}")
        events = {n: type for (r, n), type in self._events.items() if r == reference}
        if sorted(told) != list(range(1, len(told) + 1)) or events != told:
            self.world.fail("INV9", f"the events of {reference} are {events} and must be {told}")

    def _ensure_known(self, payment: Payment, charge: SimulatedCharge, own: list[Anomaly], peace: datetime) -> None:
        ours, theirs = self._gone_back(own), charge.returned
        moves = [move for (reference, _), move in self.state.transitions.items() if reference == payment.reference]
        is_in_status = any((move.to_status.value, move.reason) == ("REVERSED", charge.reference) for move in moves)
        is_all_back = is_in_status or ours == payment.amount
        for fact in charge.later:
            if fact.is_told and not is_all_back and not self._is_kept(fact, own):
                self.world.fail("INV9", f"{fact} of {charge.reference} was acknowledged and nothing is left of it")
        is_twice = len(charge.transactions) > 1 and all(charge.transactions.values())
        if is_twice and not any(f.kind.value == "SECOND_CHARGE" for f in own):
            self.world.fail("INV9", f"{charge.reference} was paid twice, and nobody is told")
        if is_in_status:
            return  # it is told with the status, not as a fact
        if ours > theirs:
            self.world.fail("INV9", f"{ours} kobo of {charge.reference} count as gone back, and {theirs} are")
        is_told = all(fact.is_told for fact in charge.later)
        can_be_asked = self._can_be_asked(charge)
        if ours < theirs and (is_told or (theirs == charge.taken and can_be_asked)):
            self.world.fail("INV9", f"{theirs} kobo of {charge.reference} went back, and {ours} are known to have")
        if theirs == charge.taken == ours and can_be_asked:
            self._ensure_in_time(charge, own, peace)

    def _can_be_asked(self, charge: SimulatedCharge) -> bool:
        """Whether its account is still on file: not after its gateway was deleted or pointed at another."""
        is_there = (
            self.state.gateways[f"gw_{charge.slug}"].status.value != "DELETED"
            and charge.account not in self.ledger.moved_away
        )
        return is_there and not charge.is_odd

    def _ensure_in_time(self, charge: SimulatedCharge, own: list[Anomaly], peace: datetime) -> None:
        confirmed = [a.confirmed_at for a in self.state.attempts.values() if a.provider_reference == charge.reference]
        last = max(fact.at for fact in charge.later if fact.returned)
        since = max(last, peace, self.ledger.back_at.get(charge.account, peace), charge.even_at or peace)
        asks = [at + after for at in confirmed if at is not None for after in CHECKS_WHEN_PAID if at + after > since]
        # What names it after a status told of it adds nothing.
        known = min(f.at for f in own if self._gone_back([fact for fact in own if fact.at <= f.at]) == charge.returned)
        if asks and known > min(asks) + SLACK:
            self.world.fail("INV9", f"that {charge.reference} was paid back was known at {known}, not at {min(asks)}")

    @staticmethod
    def _is_kept(fact: LaterFact, own: list[Anomaly]) -> bool:
        if fact.id is None:
            # Each event of a refund without an id is a fact; the same event twice is one.
            return any(f.kind.value in OF_PAID and fact.kobo in f.details["amounts"] for f in own)
        name = "refundId" if fact.state is None else "disputeId"
        return any((f.details.get(name), f.details.get("state")) == (fact.id, fact.state) for f in own)

    @staticmethod
    def _gone_back(own: list[Anomaly]) -> int:
        """Kobo, by our facts; of a dispute its end counts."""
        back: dict[str, int] = {}
        for fact in own:
            kobo = int(fact.details.get("amount", max(fact.details.get("amounts", []), default=0)))
            if fact.kind.value == "DISPUTE":
                id, state = fact.details["disputeId"], fact.details["state"]
                if state != "opened":  # which may come after its end
                    back[id] = kobo if state in ("lost", "accepted") else 0
            elif fact.kind.value in OF_PAID:
                back[fact.id] = kobo
        return sum(back.values())
