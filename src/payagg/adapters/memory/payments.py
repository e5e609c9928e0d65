"""Payments with their attempts, transitions and provider calls in memory."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from payagg.adapters.memory.anomalies import MemoryAnomalies
from payagg.adapters.memory.state import BrokenRule, State
from payagg.adapters.memory.webhooks import MemoryWebhooks
from payagg.application.ports.outside import Conflict, ReferenceTaken
from payagg.application.ports.payments import PaymentAggregate, PaymentToSettle, ProviderCall
from payagg.domain.attempt import FIRST_ASK_MAX, HASTEN_PAID, Attempt, AttemptState
from payagg.domain.checks import revised
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import PAYMENT, Payment, Status, Transition
from payagg.domain.rate_limit import EPOCH
from payagg.domain.values import CLOCK_SLACK, Environment

R = TypeVar("R")
IMMUTABLE = (
    "reference",
    "business_id",
    "environment",
    "amount",
    "currency",
    "idempotency_key",
    "created_at",
    "expires_at",
    "is_test",
    "api_key_id",
)
ALONE = (AttemptState.CLAIMED, AttemptState.HANDED_OFF)  # at most one attempt of a payment is in each of these


@dataclass(frozen=True)
class MemoryPayments:
    state: State

    async def get(self, reference: str) -> Payment | None:
        return self.state.payments.get(reference)

    async def lock(self, reference: str) -> Payment | None:
        return self.state.payments.get(reference)

    async def aggregate(self, reference: str) -> PaymentAggregate | None:
        payment = self.state.payments.get(reference)
        if payment is None:
            return None
        business = self.state.businesses.get(payment.business_id)
        return PaymentAggregate(payment, business, _numbered(self.state.attempts, reference))

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        return await self.aggregate(reference)

    async def lock_to_settle(self, reference: str) -> PaymentToSettle | None:
        payment = self.state.payments.get(reference)
        if payment is None:
            return None
        subscribers = await MemoryWebhooks(self.state).subscribers(payment.business_id, payment.environment)
        anomalies = await MemoryAnomalies(self.state).of_payment(reference)
        return PaymentToSettle(payment, _numbered(self.state.attempts, reference), subscribers, anomalies)

    async def add(self, payment: Payment) -> bool:
        key = payment.business_id, payment.environment, payment.idempotency_key
        if key in self.state.idempotency_keys:
            return False
        if payment.reference in self.state.payments:
            raise ReferenceTaken(payment.reference)
        self.state.payments[payment.reference] = payment
        if payment.idempotency_key is not None:
            self.state.idempotency_keys[key[0], key[1], payment.idempotency_key] = payment.reference
        return True

    async def save(self, payment: Payment, transition: Transition) -> None:
        stored = self.state.payments[payment.reference]
        if (stored.status, stored.sequence) != (transition.from_status, transition.sequence - 1):
            raise Conflict
        if (transition.from_status.value, transition.to_status.value) not in PAYMENT.pairs():
            raise BrokenRule(f"{transition.from_status} does not lead to {transition.to_status}")
        if any(getattr(stored, name) != getattr(payment, name) for name in IMMUTABLE):
            raise BrokenRule(f"an immutable fact of {payment.reference} would change")
        if payment.environment is Environment.LIVE and payment.gateway == SANDBOX_SLUG:
            raise BrokenRule("the simulator never serves LIVE")
        if payment.is_test and payment.gateway not in (None, SANDBOX_SLUG):
            raise BrokenRule("the simulator alone serves a test payment")
        self.state.payments[payment.reference] = payment
        self.state.transitions[payment.reference, transition.sequence] = transition

    async def note(self, payment: Payment) -> None:
        stored = self.state.payments[payment.reference]
        noted = {name: getattr(payment, name) for name in ("fee", "net_amount", "has_adjustments", "sequence")}
        if stored.is_final and noted["sequence"] != stored.sequence:
            raise BrokenRule("a final payment keeps its number")
        self.state.payments[payment.reference] = revised(stored, **noted)

    async def expired(self, now: datetime, limit: int) -> list[Payment]:
        expired = [payment for payment in self.state.payments.values() if payment.is_expired(now)]
        return sorted(expired, key=lambda payment: (payment.expires_at, payment.reference))[:limit]

    async def initiated(self, until: datetime, reference: str, limit: int) -> list[Payment]:
        ends = sorted((p.expires_at, p.reference) for p in self.state.payments.values() if p.status is Status.INITIATED)
        past = [own for end, own in ends if (end, own) > (until, reference)]
        return [self.state.payments[own] for own in past[:limit]]

    async def attempts(self, reference: str) -> list[Attempt]:
        return _numbered(self.state.attempts, reference)

    async def add_attempt(self, attempt: Attempt) -> None:
        if (attempt.reference, attempt.number) in self.state.attempts:
            raise BrokenRule(f"attempt {attempt.number} of {attempt.reference} exists")
        self._write(attempt)

    async def save_attempt(self, attempt: Attempt, token: str) -> None:
        stored = self.state.attempts.get((attempt.reference, attempt.number))
        if stored is None or stored.token != token:
            raise Conflict("the attempt was taken over by another transaction")
        self._write(attempt)
        self.state.holds.pop((attempt.reference, attempt.number), None)

    async def due_asks(
        self,
        gateway: str,
        environment: Environment,
        now: datetime,
        limit: int,
        hold: timedelta,
        since: datetime = EPOCH,
    ) -> list[Attempt]:
        holds, turns = self.state.holds, Counter[str]()
        free = []
        for at, attempt in self._asked_by(max(now, since + FIRST_ASK_MAX)):
            payment = self.state.payments.get(attempt.reference)
            if payment is None or (attempt.gateway, payment.environment) != (gateway, environment):
                continue
            held_until = holds.get((attempt.reference, attempt.number), EPOCH)
            held_until = held_until if held_until <= now + hold + CLOCK_SLACK else EPOCH
            is_due = at <= now and held_until <= now
            is_unasked = now < since + FIRST_ASK_MAX and (attempt.last_ask_at or EPOCH) < since
            is_unasked = is_unasked and held_until < since + hold
            was_in_the_air = attempt.created_at < since and attempt.state is not AttemptState.CLAIMED
            if is_due or (is_unasked and was_in_the_air):
                turns[payment.business_id] += 1
                free.append((turns[payment.business_id], at, attempt.reference, attempt))
        chosen = sorted(free, key=lambda due: due[:3])[:limit]
        holds.update({(attempt.reference, attempt.number): now + hold for *_, attempt in chosen})
        return [attempt for *_, attempt in sorted(chosen, key=lambda due: due[1:3])]

    async def hasten_asks(self, gateway: str, environment: Environment, now: datetime) -> int:
        own = [a for a in self.state.attempts.values() if a.gateway == gateway and (a.next_ask_at or now) > now]
        own = [a for a in own if (a.confirmed_at or now) > now - HASTEN_PAID]
        chosen = [a for a in own if self.state.payments[a.reference].environment is environment]
        for attempt in chosen:
            self._write(revised(attempt, next_ask_at=now))
        return len(chosen)

    async def end_asks(self, reference: str) -> None:
        for attempt in _numbered(self.state.attempts, reference):
            self._write(revised(attempt, next_ask_at=None))
            self.state.holds.pop((reference, attempt.number), None)

    async def oldest_ask(self, gateways: Collection[str], now: datetime) -> datetime | None:
        return next((at for at, attempt in self._asked_by(now) if attempt.gateway in gateways), None)

    async def has_open_attempts(self, gateway_id: str) -> bool:
        return await self.open_attempts(gateway_id, 1) > 0

    async def open_attempts(self, gateway_id: str, most: int, other_than: Collection[str] = ()) -> int:
        own = [a for a in self.state.attempts.values() if a.gateway_id == gateway_id and a.next_ask_at is not None]
        is_open = [a for a in own if a.confirmed_at is None]
        return min(most, sum(not other_than or a.account not in (None, *other_than) for a in is_open))

    async def transitions(self, reference: str) -> list[Transition]:
        own = [transition for transition in self.state.transitions.values() if transition.reference == reference]
        return sorted(own, key=lambda transition: transition.sequence)

    async def add_call(self, call: ProviderCall) -> None:
        self.state.calls[call.id] = call

    async def calls(self, reference: str) -> list[ProviderCall]:
        found = [call for call in self.state.calls.values() if call.reference == reference]
        return sorted(found, key=lambda call: (call.at, call.id))

    async def last_answer(self, reference: str) -> ProviderCall | None:
        answers = [call for call in self.state.calls.values() if call.reference == reference and call.word is not None]
        return max(answers, key=lambda call: call.id, default=None)

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        ended = [
            (payment.settled_at, payment.reference)
            for payment in self.state.payments.values()
            if payment.settled_at and payment.settled_at < before and payment.has_payer
        ]
        return [reference for _, reference in sorted(ended)[:limit]]

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        walked = sorted(reference for reference in self.state.payments if reference > after)[:limit]
        found = [one for one in walked if (self.state.payments[one].customer_email or "").lower() == email.lower()]
        return found, walked[-1] if walked else None

    async def clear_payer(self, references: Sequence[str]) -> None:
        for reference in references:
            self.state.payments[reference] = self.state.payments[reference].without_payer()
            for attempt in _numbered(self.state.attempts, reference):
                if attempt.hand_off is not None:
                    self._write(revised(attempt, hand_off=revised(attempt.hand_off, checkout_url="")))

    async def forget_keys(self, before: datetime, limit: int) -> int:
        ended = {p.reference for p in self.state.payments.values() if p.settled_at and p.settled_at < before}
        old = sorted((own[4:12], key) for key, own in self.state.idempotency_keys.items() if own in ended)[:limit]
        for _, key in old:
            del self.state.idempotency_keys[key]
        return len(old)

    def _asked_by(self, now: datetime) -> list[tuple[datetime, Attempt]]:
        """Attempts that should have been asked about by `now`, the earliest first."""
        due = [(a.next_ask_at, a) for a in self.state.attempts.values() if a.next_ask_at and a.next_ask_at <= now]
        return sorted(due, key=lambda pair: (pair[0], pair[1].reference))

    def _write(self, attempt: Attempt) -> None:
        if (attempt.state is AttemptState.HANDED_OFF) != (attempt.hand_off is not None):
            raise BrokenRule("a hand-off belongs to HANDED_OFF alone")
        siblings = _numbered(self.state.attempts, attempt.reference)
        if attempt.state in ALONE and any(a.state is attempt.state and a.number != attempt.number for a in siblings):
            raise BrokenRule(f"{attempt.reference} already has an attempt that is {attempt.state.value}")
        self.state.attempts[attempt.reference, attempt.number] = attempt


def _numbered(rows: Mapping[tuple[str, int], R], reference: str) -> list[R]:
    """A payment's rows in order: they are numbered from 1 without gaps."""
    found: list[R] = []
    while (row := rows.get((reference, len(found) + 1))) is not None:
        found.append(row)
    return found
