"""What must hold after every commit, every answer and every crash, and once nothing is left to do.

It is judged by the ledger of those to whom it happened and by the interface's text; no rule of the domain is used.

INV0 nothing breaks: no request, sweep or callback ends in an error that nobody expects.
INV1 one payment, one charge: one hand-off is shown; before a new charge begins the one before is asked about.
INV2 what a provider took is SUCCESS here in the end, by the next ask at the latest, or kept for people as an anomaly.
INV3 a status moves as the interface says, never away from a final one, and only on evidence.
INV4 each move has its event and its deliveries in the same commit; what counts as delivered was accepted; one id each.
INV5 amount, currency, environment and business never change, and nothing is SUCCESS by another amount.
INV6 an idempotency key answers as it did before.
INV7 nothing stays claimed, held or due for ever.
INV8 what was acknowledged is there, and stays.
INV9 what became of money that came is told, see later_money.py.
INV10 a charge begins at an ACTIVE gateway alone.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from payagg_testing.state_machine.model import CHECKED_AFTER, FINAL

from lab.simulation.later_money import LaterMoney
from lab.simulation.ledger import Order, SimulatedCharge
from lab.simulation.process import Life
from lab.simulation.world import SimulatedWorld
from payagg.domain.anomaly import Anomaly
from payagg.domain.attempt import Attempt, AttemptState
from payagg.domain.delivery import Delivery
from payagg.domain.errors import ErrorCode
from payagg.domain.gateway import Gateway
from payagg.domain.payment import Payment

K = TypeVar("K")
V = TypeVar("V")
MOVES = {("INITIATED", "PENDING"), *((before, after) for before in ("INITIATED", "PENDING") for after in FINAL)}
TRIES = {"LIVE": 10, "SANDBOX": 4}
LAST_TRY = {"LIVE": timedelta(hours=77, minutes=35, seconds=5), "SANDBOX": timedelta(minutes=35, seconds=5)}
CARD_LEADS_TO = {
    "success": "SUCCESS",
    "slow_success": "SUCCESS",
    "reversed": "REVERSED",
    "declined": "FAILED",
    "insufficient_funds": "FAILED",
}
# Asks are spread by a tenth of their delay and 25 minutes at most; then a sweep must come round, perhaps twice.
SPREAD, SLACK = timedelta(minutes=25), timedelta(minutes=10)


def changed(known: dict[K, V], now: Mapping[K, V]) -> list[tuple[V | None, V]]:
    """What was there and what is, of each that is another one; it is known from now on."""
    found = [(known.get(key), one) for key, one in now.items() if known.get(key) is not one]
    known.update(now)
    return found


class Invariants:
    """Watches one history. `world.fail` ends it at the first that does not hold."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.ledger, self.state = world, world.ledger, world.store.state
        self.peace: datetime | None = None
        self._payments: dict[str, Payment] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._attempts: dict[tuple[str, int], Attempt] = {}
        self._gateways: dict[str, Gateway] = {}
        self._anomalies = 0
        self.later = LaterMoney(world)

    def on_commit(self, life: Life) -> None:
        state = self.state
        for before, payment in changed(self._payments, state.payments):
            self._on_payment(life, before, payment)
        for _, delivery in changed(self._deliveries, state.deliveries):
            self._on_delivery(delivery)
        for earlier, attempt in changed(self._attempts, state.attempts):
            self._on_attempt(life, earlier, attempt)
        for was, gateway in changed(self._gateways, state.gateways):
            if was is not None:
                self._on_gateway(life, was, gateway)
        self.later.on_commit()
        if any(health.open_for for health in state.health.values()):
            self.world.sometimes["a provider is paused after faults"] += 1
        if len(state.anomalies) != self._anomalies:
            for anomaly in list(state.anomalies.values())[self._anomalies :]:
                self.world.sometimes[f"anomaly {anomaly.kind.value}"] += 1
                self.world.tell(life.name, f"keeps {anomaly.kind.value} of {anomaly.reference}")
                self.later.on_anomaly(anomaly)
            self._anomalies = len(state.anomalies)

    def _on_payment(self, life: Life, before: Payment | None, payment: Payment) -> None:
        order = self.ledger.orders.get(payment.amount)
        known = (payment.business_id, payment.environment, payment.currency, payment.idempotency_key)
        if order is None or known != (order.business_id, order.environment, "NGN", order.key):
            self.world.fail("INV5", f"{payment.reference} is not what was ordered: {known}, {payment.amount} kobo")
            return
        if order.reference is not None and before is None and order.key is None:
            self.world.fail("INV6", f"{payment.reference} repeats {order.reference}")
        if before is None:
            self.world.tell(life.name, f"adds {payment.reference} over {payment.amount}")
        elif before.status is not payment.status:
            self._on_move(life, before, payment)

    def _on_move(self, life: Life, before: Payment, payment: Payment) -> None:
        reference, was, status = payment.reference, before.status.value, payment.status.value
        self.world.tell(life.name, f"moves {reference} from {was} to {status} ({payment.failure_reason})")
        self.world.sometimes[f"{was} moves to {status}"] += 1
        if (was, status) not in MOVES:
            self.world.fail("INV3", f"{reference} moves from {was} to {status}")
        self._ensure_evidence(before, payment)
        event = self.state.events.get((reference, payment.sequence))
        if event is None or event.type != f"payment.{status.lower()}":
            self.world.fail("INV4", f"{reference} is {status} and its event is not in the same commit")
            return
        owner = payment.business_id, payment.environment
        every = self.state.endpoints.values()
        wanted = {e.id for e in every if e.is_active and (e.business_id, e.environment) == owner}
        there = {d.endpoint_id for d in self.state.deliveries.values() if d.event_id == event.id}
        if there != wanted:
            self.world.fail("INV4", f"event {payment.sequence} of {reference} goes to {there} instead of {wanted}")

    def _ensure_evidence(self, before: Payment, payment: Payment) -> None:
        reference, status = payment.reference, payment.status.value
        by_card = {CARD_LEADS_TO.get(card) for card in self.ledger.cards[reference]}
        if status not in FINAL or status in self.ledger.simulated[reference]:
            return
        if payment.gateway == "sandbox" and status in by_card:
            return
        if status == "SUCCESS":
            whole = [c for c in self.ledger.charges_of(reference) if c.taken == payment.amount]
            if not any(c.environment is payment.environment and c.slug == payment.gateway for c in whole):
                self.world.fail("INV5", f"{reference} is SUCCESS and nobody took {payment.amount} kobo for it")
        elif status == "REVERSED":
            if "REVERSED" not in self.ledger.said[reference]:
                self.world.fail("INV3", f"{reference} is REVERSED and no provider said so")
        elif before.status.value == "INITIATED" and payment.failure_reason == "EXPIRED":
            if self.world.clock.now() < payment.expires_at:
                self.world.fail("INV3", f"{reference} expires before its hour is over")
        elif not self.ledger.said[reference] & {"FAILED", "UNPAID"}:
            self.world.fail("INV3", f"{reference} is FAILED and no provider said that nothing was paid")

    def _on_delivery(self, delivery: Delivery) -> None:
        if delivery.status.value == "DELIVERED":
            url = self.state.endpoints[delivery.endpoint_id or ""].url
            if not self.ledger.accepted[url][delivery.event_id]:
                self.world.fail("INV4", f"{delivery.event_id} counts as delivered and {url} never accepted it")
        elif delivery.status.value == "FAILED":
            endpoint = self.state.endpoints[delivery.endpoint_id or ""]
            is_lost = delivery.last_error == "given up: earlier tries were never recorded"
            if is_lost and self.world.clock.now() < delivery.created_at + LAST_TRY[delivery.environment.value]:
                self.world.fail("INV4", f"{delivery.event_id} is given up before the schedule's last instant")
            if delivery.attempts < TRIES[delivery.environment.value] and endpoint.is_active and not is_lost:
                self.world.fail("INV4", f"{delivery.event_id} is given up after {delivery.attempts} tries")
            self.world.sometimes["a delivery is given up"] += 1

    def _on_attempt(self, life: Life, before: Attempt | None, attempt: Attempt) -> None:
        state = attempt.state.value
        gateway = self.state.gateways.get(attempt.gateway_id or "")
        if before is None and gateway is not None and gateway.status.value != "ACTIVE":
            self.world.fail("INV10", f"{attempt.provider_reference} begins at {gateway.id}, {gateway.status.value}")
        if before is None or before.token != attempt.token:
            life.tokens.add(attempt.token)
            self.world.sometimes["a stale claim is taken over"] += before is not None
        if before is not None:
            kept = before.hand_off, before.confirmed_at
            if any(
                was not in (None, now) for was, now in zip(kept, (attempt.hand_off, attempt.confirmed_at), strict=True)
            ):
                self.world.fail("INV8", f"{attempt.provider_reference} loses its hand-off or that it was paid")
        if before is None or before.state is not attempt.state:
            self.world.tell(life.name, f"makes {attempt.provider_reference} {state} at {attempt.gateway}")

    def _on_gateway(self, life: Life, was: Gateway, gateway: Gateway) -> None:
        status = gateway.status.value
        at_it = {a.reference for a in self.state.attempts.values() if a.gateway_id == gateway.id}
        is_at_work = any(self.state.payments[each].status.value == "PENDING" for each in at_it)
        if was.status is not gateway.status:
            self.world.tell(life.name, f"makes {gateway.id} {status}")
            self.world.sometimes["a drain ends with a payment in flight"] += is_at_work and status == "DISABLED"
        elif was.credentials != gateway.credentials:
            self.world.sometimes["credentials are replaced with a payment in flight"] += is_at_work

    def on_order(self, order: Order, reference: str) -> None:
        if order.reference not in (None, reference):
            self.world.fail("INV6", f"the key of {order.amount} answers {reference}, before it was {order.reference}")
        order.reference = reference
        if reference not in self.state.payments:
            self.world.fail("INV8", f"{reference} was acknowledged and is not there")

    def on_refused_order(self, order: Order, code: ErrorCode) -> None:
        if code is not ErrorCode.DUPLICATE_PAYMENT:
            return
        found = [p for p in self.state.payments.values() if p.amount == order.amount]
        now = self.world.clock.now()
        is_open = {p.status.value in ("INITIATED", "PENDING") for p in found}
        is_past = all(p.status.value == "INITIATED" and now >= p.expires_at for p in found)
        if not found or (is_open == {True} and not is_past):
            self.world.fail("INV6", f"the key of {order.amount} counts as used for a completed payment")
        self.world.sometimes["an idempotency key is used after completion"] += 1

    def on_hand_off(self, reference: str, url: str) -> None:
        self.ledger.shown[reference].add(url)
        if len(self.ledger.shown[reference]) > 1:
            self.world.fail("INV1", f"payers of {reference} are sent to {sorted(self.ledger.shown[reference])}")
        kept = [a.hand_off.checkout_url for a in self._of(reference) if a.hand_off is not None]
        if kept != [url]:
            self.world.fail("INV8", f"a payer of {reference} was sent to {url}, and {kept} is kept")

    def on_refused_payer(self, reference: str, code: ErrorCode) -> None:
        if code is ErrorCode.PAYMENT_EXPIRED:
            payment = self.state.payments[reference]
            if self.world.clock.now() < payment.expires_at:
                self.world.fail("INV3", f"{reference} counts as expired before its hour is over")
            attempts = self._of(reference)
            if attempts and attempts[-1].created_at < payment.expires_at and attempts[-1].state.value == "CLAIMED":
                self.world.sometimes["a payment expires while its charge is begun"] += 1

    def on_final(self, reference: str, status: str) -> None:
        if self.ledger.finals.setdefault(reference, status) != status:
            self.world.fail("INV3", f"{reference} was {self.ledger.finals[reference]} and is {status}")
        stored = self.state.payments[reference]
        is_swept = stored.status.value == status
        if not is_swept and not (status == "FAILED" and self.world.clock.now() >= stored.expires_at):
            self.world.fail("INV8", f"{reference} was told to be {status} and is {stored.status.value}")

    def on_read(self, reference: str, status: str, before: str | None) -> None:
        """`before`: the final status that anybody had been told when this was asked."""
        if before not in (None, status):
            self.world.fail("INV8", f"{reference} was told to be {before}, and then to be {status}")
        if status in FINAL:
            self.on_final(reference, status)

    def at_the_end(self) -> None:
        """Nothing is due any more."""
        for order in self.ledger.orders.values():
            if order.reference is not None and order.reference not in self.state.payments:
                self.world.fail("INV8", f"{order.reference} was acknowledged and is gone")
        for reference, status in self.ledger.finals.items():
            self.on_final(reference, status)
        for charge in self.ledger.charges.values():
            # What its merchant has ended by hand is no longer asked about: no money moves in the sandbox. Nor is a charge
            # that was begun in vain, as we sent nobody there.
            ended = self.state.payments[charge.payment].status.value in self.ledger.simulated[charge.payment]
            vain = charge.is_mailed and self._attempt(charge).state is AttemptState.REFUSED
            if charge.taken is not None and not ended and not vain:
                self._ensure_seen(charge)
        for told in self.ledger.told:
            if told.outcome != "FAILED":
                self._ensure_kept(told.reference, told.outcome)
        for event in self.state.inbox.values():
            if event.handled_at is None:
                self.world.fail("INV8", f"an event of {event.provider} was acknowledged and never handled")
        for delivery in self.state.deliveries.values():
            if delivery.status.value == "PENDING":
                self.world.fail("INV7", f"{delivery.event_id} is still to be delivered and nobody tries")
        self.later.at_the_end(self.peace or self.world.clock.now())

    def _ensure_seen(self, charge: SimulatedCharge) -> None:
        payment = self.state.payments[charge.payment]
        if charge.account in self.ledger.moved_away and payment.status.value not in ("SUCCESS", "REVERSED"):
            # Nobody could be asked: of what is open people know, and what had failed was no more looked for.
            unknown = [a for a in self.state.anomalies.values() if a.reference == payment.reference]
            if payment.status.value != "FAILED" and not unknown:
                self.world.fail("INV2", f"{charge.reference} took money, and nobody is told that nobody can be asked")
            return
        can_be_asked = charge.account not in self.ledger.moved_away
        if charge.taken != payment.amount:
            # What an account proves by its secrets ends a day after it was replaced.
            if can_be_asked and not self._anomaly(charge.reference):
                self.world.fail("INV5", f"{charge.reference} took {charge.taken} kobo and nobody is told")
            return
        if payment.status.value == "SUCCESS" and payment.settled_at is not None:
            if can_be_asked and payment.settled_at > self._bound(charge):
                self.world.fail("INV2", f"{charge.reference} took money and that was seen at {payment.settled_at}")
            return
        if not self._anomaly(charge.reference) and not (charge.returned and payment.status.value == "REVERSED"):
            self.world.fail("INV2", f"{charge.reference} took money and {payment.reference} is {payment.status.value}")

    def _bound(self, charge: SimulatedCharge) -> datetime:
        """When a charge that took money must be seen: by the next ask once nothing fails any more, and it is paid."""
        assert charge.taken_at is not None
        since = max(charge.taken_at, self.peace or charge.taken_at, charge.even_at or charge.taken_at)
        since = max(since, self.ledger.back_at.get(charge.account, since))
        asked = [a for a in self._of(charge.payment) if a.state is not AttemptState.REFUSED]  # the others are over
        begun = [a.handed_off_at or a.created_at for a in asked]
        asks = [at + after for at in begun for after in CHECKED_AFTER if at + after > since]
        return (min(asks) if asks else since) + SPREAD + SLACK

    def _ensure_kept(self, charge: str, outcome: str) -> None:
        """What an acknowledged event told stands in the payment's status, which names the paid charge, or in an
        anomaly."""
        payment = self.state.payments[charge.partition(".")[0]]
        moves = [move for (reference, _), move in self.state.transitions.items() if reference == payment.reference]
        paid = {move.reason for move in moves if move.to_status.value in ("SUCCESS", "REVERSED")}
        # What was reversed was paid.
        is_status = payment.status.value in {"SUCCEEDED": ("SUCCESS", "REVERSED")}.get(outcome, (outcome,))
        is_its = outcome == "FAILED" or not paid.isdisjoint((charge, "SIMULATED"))
        if not (is_status and is_its) and not self._anomaly(charge):
            self.world.fail("INV8", f"{outcome} of {charge} was acknowledged and nothing is left of it")

    def _attempt(self, charge: SimulatedCharge) -> Attempt:
        return next(a for a in self._of(charge.payment) if a.provider_reference == charge.reference)

    def _anomaly(self, charge: str) -> Anomaly | None:
        """A fact about the charge that is kept for people; that nothing could be found out is none."""
        found = [a for a in self.state.anomalies.values() if a.kind.value != "NO_EVIDENCE"]
        return next((a for a in found if a.details.get("providerReference") == charge), None)

    def _of(self, reference: str) -> list[Attempt]:
        return [attempt for (payment, _), attempt in sorted(self.state.attempts.items()) if payment == reference]
