"""The end of an INITIATED payment's window: FAILED for every reader at once, and stored by a reader or the sweep."""

from dataclasses import dataclass

from payagg.application.payments.settlement import Settlement
from payagg.application.ports.outside import Unavailable
from payagg.application.use_case import retry_on_conflict
from payagg.domain.payment import Payment

BATCH = 200


@dataclass(frozen=True)
class Expiry:
    settlement: Settlement

    async def ensure_stored(self, payment: Payment) -> Payment:
        """The payment for a reader. One whose window has closed is stored as FAILED before anybody reads it: it would
        open again if the database's clock was ahead and is set back. While the database takes no writes, the sweep
        does it."""
        now = self.settlement.clock.now()
        if not payment.is_expired(now):
            return payment
        try:
            return await self.expire(payment.reference) or payment.as_of(now)
        except Unavailable:
            return payment.as_of(now)

    @retry_on_conflict
    async def expire(self, reference: str) -> Payment | None:
        """The payment, FAILED if its window has closed; None where there is none."""
        async with self.settlement.store.begin() as tx:
            payment = await tx.payments.lock(reference)
            if payment is None or not payment.is_expired(self.settlement.clock.now()):
                return payment
            return await self.settlement.write(tx, *payment.expire())

    @retry_on_conflict
    async def sweep(self) -> int:
        """Stores the expiry of INITIATED payments past their window, which every reader sees already. A batch at a
        time."""
        async with self.settlement.store.begin() as tx:
            expired = await tx.upkeep.lock_expired(self.settlement.clock.now(), BATCH)
            owners = {(payment.business_id, payment.environment) for payment in expired}
            subscribers = await tx.endpoints.subscribers_of(owners)
            for payment in expired:
                own = subscribers.get((payment.business_id, payment.environment), [])
                await self.settlement.write(tx, *payment.expire(), own)
            return len(expired)
