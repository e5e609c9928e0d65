"""Re-encrypts sealed data under the first encryption key, while servers run."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

from payagg.application.ports.outside import KeyedVault
from payagg.application.ports.store import Transaction
from payagg.application.ports.upkeep import SealedBlob, SealedKind
from payagg.application.use_case import UseCase, in_steps
from payagg.domain.audit import Action, Actor, Changes

BATCH = 100  # rows looked at, and at most changed, in one transaction


@dataclass
class Resealed:
    """By kind: the number now under the first key, and the number that no configured key opens."""

    moved: Counter[SealedKind] = field(default_factory=Counter)
    closed: Counter[SealedKind] = field(default_factory=Counter)


@dataclass(frozen=True)
class Reseal(UseCase):
    vault: KeyedVault

    async def count_by_key(self) -> dict[SealedKind, Counter[str]]:
        """The number of blobs of each kind, by key id."""
        found: dict[SealedKind, Counter[str]] = {kind: Counter() for kind in SealedKind}
        async for kind, one in self._blobs():
            found[kind][self.vault.key_id(one.blob)] += 1
        return found

    async def closed(self) -> list[tuple[SealedKind, str]]:
        """Kind and owner of each blob that no key opens, though one may have the name of its own."""
        return [(kind, one.owner_id) async for kind, one in self._blobs() if self._open(kind, one) is None]

    async def run(self, *, by: Actor) -> Resealed:
        """Safe to repeat and to kill: each batch is one transaction with its own audit entry. A blob changed meanwhile
        is left alone: it is replaced only while it equals the one that was opened."""
        done = Resealed()
        for kind in SealedKind:
            async for moved, closed in in_steps(self.store, partial(self._reseal, kind, by)):
                done.moved[kind] += moved
                done.closed[kind] += closed
        return done

    async def _blobs(self) -> AsyncIterator[tuple[SealedKind, SealedBlob]]:
        for kind in SealedKind:
            async for page in in_steps(self.store, partial(_page, kind)):
                for one in page:
                    yield kind, one

    def _open(self, kind: SealedKind, one: SealedBlob) -> bytes | None:
        try:
            return self.vault.open(one.blob, kind.context(one.owner_id))
        except ValueError:
            return None

    async def _reseal(
        self, kind: SealedKind, by: Actor, tx: Transaction, after: str
    ) -> tuple[tuple[int, int], str | None]:
        """How many of a batch were moved, how many do not open, and where the next begins."""
        first = self.vault.sealing_key
        moved = closed = 0
        page, last = await _page(kind, tx, after)
        for one in page:
            if self.vault.key_id(one.blob) == first:
                continue
            plain = self._open(kind, one)
            if plain is None:
                closed += 1
                continue
            anew = self.vault.seal(plain, kind.context(one.owner_id))
            moved += await tx.upkeep.reseal(kind, one.owner_id, one.blob, anew)
        if moved:
            changes: Changes = {
                "kind": {"before": None, "after": kind.value},
                "resealed": {"before": None, "after": moved},
            }
            await self.record(tx, by, Action.SECRETS_RESEAL, first, changes)
        return (moved, closed), last


async def _page(kind: SealedKind, tx: Transaction, after: str) -> tuple[list[SealedBlob], str | None]:
    page = await tx.upkeep.sealed_blobs(kind, after, BATCH)
    return page, page[-1].owner_id if page else None
