"""What the console does in a transaction, and the indexes that it goes by."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from payagg_testing.builders import MINUTE, NOW

from payagg.adapters.postgres.store import PostgresTransaction
from payagg.domain.audit import ActorRealm
from payagg.extensions.console.postgres import SessionRows


async def use(tx: PostgresTransaction) -> None:
    [listed, *_] = await tx.of(SessionRows).of(ActorRealm.MERCHANT, "user 7")
    session = await tx.of(SessionRows).find(listed.session)
    assert session == listed
    await tx.of(SessionRows).touch(replace(session, seen_at=NOW + MINUTE))
    await tx.of(SessionRows).end(session.realm, session.subject, session.session)
    await tx.of(SessionRows).end_others(session.realm, session.subject, session.session)


IN_A_TRANSACTION: dict[str, tuple[Callable[[PostgresTransaction], Awaitable[Any]], set[str]]] = {
    "console sessions": (use, {"console_sessions_pkey", "console_sessions_of_subject"}),
    "console sessions that have ended": (
        lambda tx: tx.of(SessionRows).forget(NOW + MINUTE),
        {"console_sessions_ends_at", "console_sessions_pkey"},
    ),
}
