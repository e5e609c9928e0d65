"""Payments in memory: transitions, calls of providers, requests to end one by hand, what is left of archived ones."""

from operator import attrgetter

from payagg.application.ports.outside import Conflict, ReferenceTaken
from payagg.application.ports.payments import LockedPayment, PaymentAggregate, ProviderCall
from payagg.domain.archived import ArchivedPayment, ArchivePart
from payagg.domain.checks import with_changes
from payagg.domain.gateway import SANDBOX_SLUG
from payagg.domain.payment import PAYMENT, Payment, Transition
from payagg.domain.resolution import Resolution
from payagg.domain.values import Environment
from payagg_testing.memory.attempts import rows_of_payment
from payagg_testing.memory.endpoints import MemoryEndpoints
from payagg_testing.memory.reports import MemoryAnomalies
from payagg_testing.memory.state import BrokenRule, MemoryRepository

_facts_of = attrgetter(
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


class MemoryPayments(MemoryRepository):
    async def get(self, reference: str) -> Payment | None:
        return self.state.payments.get(reference)

    lock = get

    async def lock_aggregate(self, reference: str) -> PaymentAggregate | None:
        payment = self.state.payments.get(reference)
        if payment is None:
            return None
        business = self.state.businesses.get(payment.business_id)
        return PaymentAggregate(payment, business, rows_of_payment(self.state.attempts, reference))

    async def lock_for_status(self, reference: str) -> LockedPayment | None:
        payment = self.state.payments.get(reference)
        if payment is None:
            return None
        subscribers = await MemoryEndpoints(self.state).subscribers(payment.business_id, payment.environment)
        anomalies = await MemoryAnomalies(self.state).of_payment(reference)
        return LockedPayment(payment, rows_of_payment(self.state.attempts, reference), subscribers, anomalies)

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
        if (transition.from_status.value, transition.to_status.value) not in PAYMENT.pairs:
            raise BrokenRule(f"{transition.from_status} does not lead to {transition.to_status}")
        if _facts_of(stored) != _facts_of(payment):
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
        self.state.payments[payment.reference] = with_changes(stored, **noted)

    async def transitions(self, reference: str) -> list[Transition]:
        own = [transition for transition in self.state.transitions.values() if transition.reference == reference]
        return sorted(own, key=lambda transition: transition.sequence)

    async def archived(self, reference: str) -> tuple[ArchivedPayment, ArchivePart] | None:
        found = self.state.archived.get(reference)
        return (found, self.state.archive_parts[found.part]) if found is not None else None


class MemoryProviderCalls(MemoryRepository):
    async def add(self, call: ProviderCall) -> None:
        self.state.calls[call.id] = call

    async def of_payment(self, reference: str) -> list[ProviderCall]:
        found = [call for call in self.state.calls.values() if call.reference == reference]
        return sorted(found, key=lambda call: (call.at, call.id))

    async def last_answer(self, reference: str) -> ProviderCall | None:
        answers = [call for call in self.state.calls.values() if call.reference == reference and call.word is not None]
        return max(answers, key=lambda call: call.id, default=None)


OF_PAYMENT_MAX = 100


class MemoryResolutions(MemoryRepository):
    async def add(self, resolution: Resolution) -> None:
        self.state.resolutions[resolution.id] = resolution

    async def latest(self, reference: str) -> Resolution | None:
        return max(self._own(reference), key=lambda one: one.id, default=None)

    async def of_payment(self, reference: str) -> list[Resolution]:
        return sorted(self._own(reference), key=lambda one: one.id)[:OF_PAYMENT_MAX]

    async def confirm(self, resolution: Resolution) -> None:
        if self.state.resolutions[resolution.id].confirmed_at is not None:
            raise BrokenRule("a request is confirmed once")
        if resolution.confirmed_by == resolution.requested_by:
            raise BrokenRule("who asked does not confirm")
        self.state.resolutions[resolution.id] = resolution

    def _own(self, reference: str) -> list[Resolution]:
        return [one for one in self.state.resolutions.values() if one.reference == reference]
