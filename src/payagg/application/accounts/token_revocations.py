"""Revokes bearer tokens: a lost one, or all of a person who left or whose account was stolen."""

from dataclasses import dataclass
from datetime import datetime

from payagg.application.accounts.audit import record
from payagg.application.ports.outside import Clock, Entropy
from payagg.application.ports.store import Store
from payagg.application.retry import retry_on_conflict
from payagg.domain.audit import Action, Actor
from payagg.domain.errors import invalid
from payagg.domain.revocation import Revocation, RevokedClaim


@dataclass(frozen=True)
class TokenRevocations:
    store: Store
    clock: Clock
    entropy: Entropy

    @retry_on_conflict
    async def revoke(
        self, claim: RevokedClaim, value: str, issued_before: datetime | None = None, *, by: Actor
    ) -> Revocation:
        """Takes effect on the next request in every process. By subject, it revokes tokens issued before
        `issued_before`: now when it is None, and never later than now. Raises VALIDATION_ERROR."""
        now = self.clock.now()
        if issued_before is not None and issued_before > now:
            raise invalid("issued-before", "Must not be in the future.")
        revocation = Revocation(claim, value, issued_before or now)
        changes = {"issuedBefore": {"before": None, "after": f"{revocation.issued_before:%Y-%m-%dT%H:%M:%SZ}"}}
        async with self.store.begin() as tx:
            await tx.revocations.add(revocation)
            await record(tx, self.entropy, now, by, Action.TOKEN_REVOKE, value, changes)
        return revocation
