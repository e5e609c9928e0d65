"""Upkeep in memory: payments to expire, payers to erase, instants of a clock that was ahead, sealed data."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from payagg.adapters.memory.attempts import rows_of_payment, write_attempt
from payagg.adapters.memory.state import MemoryRepository
from payagg.application.ports.upkeep import SealedBlob, SealedKind
from payagg.domain.checks import with_changes
from payagg.domain.payment import Payment, Status
from payagg.domain.values import CLOCK_SLACK
from payagg.domain.webhook import is_dated_ahead


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


class MemoryFutureInstants(MemoryRepository):
    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        asks = [attempt for attempt in self.state.attempts.values() if attempt.is_dated_ahead(now)]
        for attempt in asks:
            self.state.attempts[attempt.reference, attempt.number] = attempt.pulled_back(now)
            self.state.holds.pop((attempt.reference, attempt.number), None)
        deliveries = [one for one in self.state.deliveries.values() if is_dated_ahead(one, now)]
        for one in deliveries:
            dates = {name: getattr(one, name) for name in ("created_at", "last_attempt_at", "lease_until")}
            back = {name: min(at, now) for name, at in dates.items() if at is not None}
            self.state.deliveries[one.id] = replace(one, next_attempt_at=now, **back)
        events = [event for event in self.state.inbox.values() if event.is_dated_ahead(now)]
        for event in events:
            received_at = min(event.received_at, now)
            self.state.inbox[event.id] = replace(event, received_at=received_at, next_attempt_at=now)
        runs = [run for run in self.state.reconciliations.values() if run.claim and run.started_at > now + CLOCK_SLACK]
        for run in runs:
            self.state.reconciliations[run.id] = replace(run, claim=None)
        return len(asks) + len(deliveries) + len(events) + len(runs), None


FIELDS = {
    SealedKind.GATEWAY_CREDENTIALS: "credentials",
    SealedKind.REPLACED_SECRETS: "replaced_secrets",
    SealedKind.ENDPOINT_CURRENT: "secret",
    SealedKind.ENDPOINT_PREVIOUS: "previous_secret",
}
OF_GATEWAYS = (SealedKind.GATEWAY_CREDENTIALS, SealedKind.REPLACED_SECRETS)


class MemorySealed(MemoryRepository):
    async def page(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        found = [(id, getattr(owner, FIELDS[kind])) for id, owner in sorted(self._owners(kind).items()) if id > after]
        return [SealedBlob(id, blob) for id, blob in found if blob is not None][:limit]

    async def replace(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        owners = self._owners(kind)
        if getattr(owners.get(owner_id), FIELDS[kind], None) != before:
            return False
        owners[owner_id] = replace(owners[owner_id], **{FIELDS[kind]: after})
        return True

    def _owners(self, kind: SealedKind) -> dict[str, Any]:
        return self.state.gateways if kind in OF_GATEWAYS else self.state.endpoints
