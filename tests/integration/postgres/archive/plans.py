"""What the archive does in a transaction."""

from collections.abc import Awaitable, Callable
from typing import Any

from payagg_testing.builders import MINUTE, NOW

from payagg.adapters.postgres.store import PostgresTransaction
from payagg.domain.archived import ArchivedPayment
from payagg.extensions.archive.ports import ARCHIVE
from tests.integration.postgres.query_plans import nth


async def archive(tx: PostgresTransaction) -> None:
    references = [nth(4 * n + 2) for n in range(100)]
    await tx.of(ARCHIVE).lock_ready(references)
    own = await tx.of(ARCHIVE).histories(references)
    await tx.of(ARCHIVE).find_archived(references)
    calls = [(row[0], row[1]) for row in own["provider_calls"]]
    await tx.of(ARCHIVE).move([ArchivedPayment(one, 1, (), None) for one in references], calls)
    await tx.payments.archived(references[0])
    assert len(calls) == 100


IN_A_TRANSACTION: dict[str, Callable[[PostgresTransaction], Awaitable[Any]]] = {
    "next history": lambda tx: tx.of(ARCHIVE).next_with_history(nth(5)),
    "histories that may be archived": lambda tx: tx.of(ARCHIVE).ready(nth(0), nth(90_000), NOW + MINUTE, 100),
    "histories archived": archive,
}
