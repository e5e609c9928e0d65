"""What most use cases work with: a store, a clock and ids; transactions that are repeated; the audit trail's entries.

A transaction is repeated only when it was certainly rolled back. A library that repeats after any error does not fit:
once COMMIT was sent, a lost connection proves nothing, and a repeat could do committed work twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from payagg.application.ports.outside import Clock, Conflict, Entropy, Unavailable
from payagg.application.ports.store import Store, Transaction
from payagg.domain.audit import Action, Actor, AuditEntry, Changes


@dataclass(frozen=True)
class UseCase:
    store: Store
    clock: Clock
    entropy: Entropy

    async def record(
        self,
        tx: Transaction,
        by: Actor,
        action: Action,
        object_id: str,
        changes: Changes | None = None,
        *,
        business_id: str | None = None,
    ) -> None:
        """Adds an entry in the transaction of the change. `changes` None = the action needs no fields; empty = nothing
        changed, so no entry is written."""
        if changes is None or changes:
            now = self.clock.now()
            id = self.entropy.id("aud", now)
            await tx.audit.add(AuditEntry.of(id, now, by, action, object_id, changes or {}, business_id))


P = ParamSpec("P")
R = TypeVar("R")
TRIES = 4


def retry_on_conflict(work: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Repeats `work` when its transaction was rolled back by a Conflict; after TRIES it is Unavailable.

    Only for work that is one transaction and nothing else: a provider call is never repeated blindly.
    """

    @wraps(work)
    async def repeat(*args: P.args, **kwargs: P.kwargs) -> R:
        for number in range(TRIES):
            try:
                return await work(*args, **kwargs)
            except Conflict:
                await asyncio.sleep(0.01 * 4**number)
        raise Unavailable("the transaction kept conflicting")

    return repeat


@retry_on_conflict
async def in_transaction(store: Store, work: Callable[[Transaction], Awaitable[R]]) -> R:
    """The result of `work` in a transaction of its own."""
    async with store.begin() as tx:
        return await work(tx)


async def in_steps(
    store: Store, work: Callable[[Transaction, str], Awaitable[tuple[R, str | None]]]
) -> AsyncIterator[R]:
    """The results of `work`, a transaction for each step. It gets where the last step ended, the empty text at first,
    and says where its own did, None past the end."""
    after: str | None = ""
    while after is not None:
        done, after = await in_transaction(store, lambda tx, last=after: work(tx, last))  # type: ignore[misc]
        yield done
