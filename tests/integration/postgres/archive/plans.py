"""What the archive does in a transaction, and the indexes that it goes by."""

from collections.abc import Awaitable, Callable
from typing import Any

from payagg_testing.builders import MINUTE, NOW

from payagg.adapters.postgres.store import PostgresTransaction
from payagg.domain.archived import ArchivedPayment
from payagg.extensions.archive.postgres import ArchiveRows
from tests.integration.postgres.query_plans import nth

HISTORY = {
    *("payments_pkey", "transitions_pkey", "attempts_pkey", "events_pkey", "deliveries_pkey", "anomalies_of_payment")
}


async def archive(tx: PostgresTransaction) -> None:
    references = [nth(4 * n + 2) for n in range(100)]
    await tx.of(ArchiveRows).lock_ready(references)
    own = await tx.of(ArchiveRows).histories(references)
    await tx.of(ArchiveRows).find_archived(references)
    calls = [(row[0], row[1]) for row in own["provider_calls"]]
    await tx.of(ArchiveRows).move([ArchivedPayment(one, 1, (), None) for one in references], calls)
    await tx.payments.archived(references[0])
    assert len(calls) == 100


IN_A_TRANSACTION: dict[str, tuple[Callable[[PostgresTransaction], Awaitable[Any]], set[str]]] = {
    "next history": (lambda tx: tx.of(ArchiveRows).next_with_history(nth(5)), {"transitions_pkey"}),
    "histories that may be archived": (
        lambda tx: tx.of(ArchiveRows).ready(nth(0), nth(90_000), NOW + MINUTE, 100),
        HISTORY,
    ),
    "histories archived": (archive, HISTORY | {"provider_calls_pkey", "archived_payments_pkey"}),
}
