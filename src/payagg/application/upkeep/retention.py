"""Removes what is not kept for ever: payers' data, providers' texts, rows that no longer decide anything. A table of
docs/operating/running.md has all periods. Payment history is kept.

Each step is a bounded batch and a transaction of its own, and safe to repeat.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from payagg.application.ports.store import Store, Transaction
from payagg.application.telemetry import count
from payagg.application.use_case import UseCase, in_steps, in_transaction, retry_on_conflict
from payagg.domain.audit import Action, Actor
from payagg.domain.checks import with_changes
from payagg.domain.delivery import RETENTION, Event
from payagg.domain.values import parse_email

BATCH, DELIVERIES_BATCH = 500, 1_000
# How long a repeated event is recognised. No provider repeats one after days; a signed one replayed later cannot move a
# final payment, and its anomaly is stored once.
INBOX_KEPT = timedelta(days=180)
KEYS_KEPT = timedelta(days=730)
# After closing, of SANDBOX alone: what happened to money is kept for good.
ANOMALIES_KEPT = timedelta(days=365)
ENDING = ("anomalies", "idempotency_keys", "inbox")  # tables, for the counters of removed rows
WALK = 1_000  # payments looked at in one step of the search for a payer
NULL = msgspec.Raw(b"null")
SHOWN_FIELDS = ("customerEmail", "customerName", "customerPhone", "metadata")  # as an event's `data` calls them


@dataclass(frozen=True)
class Erasure:
    """The numbers of a payer's payments that were cleared, and that wait as their checkout is still open."""

    cleared: int
    waiting: int


@dataclass(frozen=True)
class Retention(UseCase):
    """`keys_kept`: how long after its payment's end an idempotency key still finds the payment."""

    keys_kept: timedelta = KEYS_KEPT

    async def forget_deliveries(self) -> int:
        """Removes a batch of ended deliveries and events older than RETENTION; 0 when none is left. For the worker."""
        return await self.store.queue.purge(self.clock.now() - RETENTION, DELIVERIES_BATCH)

    async def empty_inbox(self) -> int:
        """Empties a batch of inbox bodies past their retention; 0 when none is left. For the worker."""
        return await in_transaction(self.store, lambda tx: tx.inbox.empty(self.clock.now() - RETENTION, BATCH))

    async def forget_events(self) -> int:
        """Removes handled provider events older than INBOX_KEPT; how many. For the worker."""
        forgotten, before = 0, self.clock.now() - INBOX_KEPT
        async for removed in in_steps(self.store, lambda tx, after: tx.inbox.remove(before, after, BATCH)):
            count("rows_ended", "inbox", by=removed)
            forgotten += removed
        return forgotten

    async def forget_keys(self) -> int:
        """Frees a batch of idempotency keys whose payments ended `keys_kept` ago; 0 when none is left. Never the key of
        a payment that may still be paid. For the worker."""
        before = self.clock.now() - self.keys_kept
        forgotten = await in_transaction(self.store, lambda tx: tx.upkeep.forget_keys(before, BATCH))
        count("rows_ended", "idempotency_keys", by=forgotten)
        return forgotten

    async def forget_anomalies(self) -> int:
        """Removes a batch of SANDBOX's anomalies closed ANOMALIES_KEPT ago; 0 when none is left. For the worker."""
        before = self.clock.now() - ANOMALIES_KEPT
        forgotten = await in_transaction(self.store, lambda tx: tx.anomalies.forget(before, BATCH))
        count("rows_ended", "anomalies", by=forgotten)
        return forgotten

    async def clear_payers(self, older_than: timedelta, *, by: Actor) -> int:
        """Clears the payer's fields of every payment that ended longer ago; how many had any."""
        before = self.clock.now() - older_than
        cleared = 0
        while done := await self._clear_batch(before, by):
            cleared += done
        return cleared

    async def erase(self, email: str, *, by: Actor) -> Erasure:
        """Clears every payment of one payer that can no longer be paid; raises VALIDATION_ERROR on `email`."""
        cleared = waiting = 0
        async for reference in payments_of_payer(self.store, email):
            if await self._erase_one(reference, by):
                cleared += 1
            else:
                waiting += 1
        return Erasure(cleared, waiting)

    @retry_on_conflict
    async def _clear_batch(self, before: datetime, by: Actor) -> int:
        async with self.store.begin() as tx:
            references = await tx.upkeep.settled_with_payer(before, BATCH)
            await _clear(tx, references)
            if references:
                changes = {"payments": {"before": len(references), "after": 0}}
                which = f"{references[0]} ... {references[-1]}"
                await self.record(tx, by, Action.RETENTION_CLEAR, which, changes)
            return len(references)

    @retry_on_conflict
    async def _erase_one(self, reference: str, by: Actor) -> bool:
        async with self.store.begin() as tx:
            payment = await tx.payments.lock(reference)
            # Until then the payer's provider receives the payer's data.
            if payment is None or not (payment.is_final or self.clock.now() >= payment.expires_at):
                return False
            await _clear(tx, [reference])
            # Never the address: the entry is kept longer.
            await self.record(tx, by, Action.PAYMENT_ERASE, reference, business_id=payment.business_id)
            return True


async def payments_of_payer(store: Store, email: str) -> AsyncIterator[str]:
    """References of all payments with that address, whatever its letter case; raises VALIDATION_ERROR on `email`."""
    parse_email(email, "email")
    async for references in in_steps(store, lambda tx, after: tx.upkeep.of_payer(email, after, WALK)):
        for reference in references:
            yield reference


async def _clear(tx: Transaction, references: Sequence[str]) -> None:
    if references:
        await tx.upkeep.clear_payer(references)
        await tx.webhook_events.save_bodies(
            [_without_payer(event) for event in await tx.webhook_events.of_payments(references)]
        )


def _without_payer(event: Event) -> Event:
    """The event with nulls for the payer's fields, and everything else to the byte."""
    body = msgspec.json.decode(event.body, type=dict[str, msgspec.Raw])
    data = msgspec.json.decode(body["data"], type=dict[str, msgspec.Raw])
    cleared = data | {name: NULL for name in SHOWN_FIELDS if name in data}
    return with_changes(event, body=msgspec.json.encode(body | {"data": msgspec.Raw(msgspec.json.encode(cleared))}))
