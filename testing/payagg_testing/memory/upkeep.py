"""Upkeep in memory: payments to expire, payers to erase, instants of a clock that was ahead, sealed data."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from payagg.application.ports.providers import LONGEST_RETRY
from payagg.application.ports.upkeep import SealedBlob, SealedKind
from payagg.domain.attempt import LEASE, LONGEST_CHECK
from payagg.domain.checks import with_changes
from payagg.domain.delivery import LONGEST_DELAY
from payagg.domain.payment import Payment, Status
from payagg.domain.values import CLOCK_SLACK
from payagg_testing.memory.attempts import rows_of_payment, write_attempt
from payagg_testing.memory.state import MemoryRepository

FIELDS = {
    SealedKind.GATEWAY_CREDENTIALS: "credentials",
    SealedKind.REPLACED_SECRETS: "replaced_secrets",
    SealedKind.ENDPOINT_CURRENT: "secret",
    SealedKind.ENDPOINT_PREVIOUS: "previous_secret",
}
OF_GATEWAYS = (SealedKind.GATEWAY_CREDENTIALS, SealedKind.REPLACED_SECRETS)


class MemoryUpkeep(MemoryRepository):
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

    async def pull_back(self, now: datetime, after: str) -> tuple[int, str | None]:
        pulled = 0
        for key, attempt in self.state.attempts.items():
            if attempt.confirmed_at or attempt.gateway_id is None:
                continue
            dates = ("created_at", "handed_off_at", "last_ask_at")
            if back := _pulled_back(attempt, "next_ask_at", dates, LONGEST_CHECK, now):
                # The lease begins again: its claimant may live.
                self.state.attempts[key] = with_changes(back, lease_until=min(back.lease_until, now + LEASE))
                self.state.holds.pop(key, None)
                pulled += 1
        for id, one in self.state.deliveries.items():
            if back := _pulled_back(one, "next_attempt_at", ("created_at", "last_attempt_at"), LONGEST_DELAY, now):
                lease = back.lease_until and min(back.lease_until, now)
                self.state.deliveries[id] = with_changes(back, lease_until=lease)
                pulled += 1
        for id, event in self.state.inbox.items():
            if back := _pulled_back(event, "next_attempt_at", ("received_at",), LONGEST_RETRY, now):
                self.state.inbox[id] = back
                pulled += 1
        for id, run in self.state.reconciliations.items():
            if run.claim and run.started_at > now + CLOCK_SLACK:
                self.state.reconciliations[id] = replace(run, claim=None)
                pulled += 1
        return pulled, None

    async def sealed_blobs(self, kind: SealedKind, after: str, limit: int) -> list[SealedBlob]:
        found = [(id, getattr(owner, FIELDS[kind])) for id, owner in sorted(self._owners(kind).items()) if id > after]
        return [SealedBlob(id, blob) for id, blob in found if blob is not None][:limit]

    async def reseal(self, kind: SealedKind, owner_id: str, before: bytes, after: bytes) -> bool:
        owners = self._owners(kind)
        if getattr(owners.get(owner_id), FIELDS[kind], None) != before:
            return False
        owners[owner_id] = replace(owners[owner_id], **{FIELDS[kind]: after})
        return True

    def _owners(self, kind: SealedKind) -> dict[str, Any]:
        return self.state.gateways if kind in OF_GATEWAYS else self.state.endpoints


def _pulled_back(row: Any, due: str, dates: Sequence[str], longest: timedelta, now: datetime) -> Any | None:
    """The row with no date ahead and due now, where only a clock that was ahead can have made it wait: one of its
    `dates` lies ahead, or the field `due` further than a rule puts it."""
    last, until = now + CLOCK_SLACK, getattr(row, due)
    if until is None or until <= last:
        return None
    given = {name: at for name in dates if (at := getattr(row, name)) is not None}
    if max(given.values()) <= last and until <= last + longest:
        return None
    return with_changes(row, **{name: min(at, now) for name, at in given.items()}, **{due: now})
