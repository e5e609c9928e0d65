"""What sweeps need of payments: those to expire, and those whose payer is to be erased."""

from collections.abc import Sequence
from datetime import datetime

from payagg.adapters.memory.attempts import rows_of_payment, write_attempt
from payagg.adapters.memory.state import MemoryRepository
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment, Status


class MemoryPaymentUpkeep(MemoryRepository):
    async def lock_expired(self, now: datetime, limit: int) -> list[Payment]:
        expired = [payment for payment in self.state.payments.values() if payment.is_expired(now)]
        return sorted(expired, key=lambda payment: (payment.expires_at, payment.reference))[:limit]

    async def list_initiated(self, until: datetime, reference: str, limit: int) -> list[Payment]:
        ends = sorted((p.expires_at, p.reference) for p in self.state.payments.values() if p.status is Status.INITIATED)
        past = [own for end, own in ends if (end, own) > (until, reference)]
        return [self.state.payments[own] for own in past[:limit]]

    async def settled_with_payer(self, before: datetime, limit: int) -> list[str]:
        ended = [
            payment.reference
            for payment in self.state.payments.values()
            if payment.settled_at and payment.settled_at < before and payment.has_payer
        ]
        return sorted(ended, key=lambda reference: reference[4:12])[:limit]

    async def of_payer(self, email: str, after: str, limit: int) -> tuple[list[str], str | None]:
        walked = sorted(reference for reference in self.state.payments if reference > after)[:limit]
        found = [one for one in walked if (self.state.payments[one].customer_email or "").lower() == email.lower()]
        return found, walked[-1] if walked else None

    async def clear_payer(self, references: Sequence[str]) -> None:
        for reference in references:
            self.state.payments[reference] = self.state.payments[reference].without_payer()
            for attempt in rows_of_payment(self.state.attempts, reference):
                if attempt.hand_off is not None:
                    write_attempt(
                        self.state, with_changes(attempt, hand_off=with_changes(attempt.hand_off, checkout_url=""))
                    )

    async def forget_keys(self, before: datetime, limit: int) -> int:
        ended = {p.reference for p in self.state.payments.values() if p.settled_at and p.settled_at < before}
        old = sorted((own[4:12], key) for key, own in self.state.idempotency_keys.items() if own in ended)[:limit]
        for _, key in old:
            del self.state.idempotency_keys[key]
        return len(old)
