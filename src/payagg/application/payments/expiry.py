"""The end of an INITIATED payment's window: FAILED for every reader at once, and stored by a reader or the sweep."""

import structlog

from payagg.application.payments.settlement import Settlement
from payagg.application.ports.outside import Unavailable
from payagg.application.telemetry import trace_of
from payagg.application.use_case import in_transaction, retry_on_conflict
from payagg.domain.payment import Payment

BATCH = 200
_log = structlog.get_logger("payagg.expiry")


async def store_expiry(settlement: Settlement, payment: Payment) -> Payment:
    """The payment for a reader. One whose window has closed is stored as FAILED before anybody reads it: it would open
    again if the database's clock was ahead and is set back. While the database takes no writes, the sweep does it."""
    now = settlement.clock.now()
    if not payment.is_expired(now):
        return payment
    try:
        return await expire(settlement, payment.reference) or payment.as_of(now)
    except Unavailable:
        return payment.as_of(now)


@retry_on_conflict
async def expire(settlement: Settlement, reference: str) -> Payment | None:
    """The payment, FAILED if its window has closed; None where there is none."""
    async with settlement.store.begin() as tx:
        payment = await tx.payments.lock(reference)
        if payment is None or not payment.is_expired(settlement.clock.now()):
            return payment
        return await settlement.write(tx, *payment.expire())


async def sweep_expired(settlement: Settlement) -> int:
    """Stores the expiry of INITIATED payments past their window, which every reader sees already. A batch at a time,
    and one by one where a payment's cannot be stored: it must not keep the others from their end."""
    try:
        return await _expire_batch(settlement)
    except Unavailable:
        raise
    except Exception:  # noqa: BLE001 - whatever the database refuses of one of them, which is told below
        now = settlement.clock.now()
        expired = await in_transaction(settlement.store, lambda tx: tx.upkeep.lock_expired(now, BATCH))
    stored = 0
    for payment in expired:
        try:
            stored += await expire(settlement, payment.reference) is not None
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            _log.error("an expiry cannot be stored", reference=payment.reference, trace=trace_of(error))
    return stored


@retry_on_conflict
async def _expire_batch(settlement: Settlement) -> int:
    async with settlement.store.begin() as tx:
        expired = await tx.upkeep.lock_expired(settlement.clock.now(), BATCH)
        owners = {(payment.business_id, payment.environment) for payment in expired}
        subscribers = await tx.endpoints.subscribers_of(owners)
        for payment in expired:
            own = subscribers.get((payment.business_id, payment.environment), [])
            await settlement.write(tx, *payment.expire(), own)
        return len(expired)
