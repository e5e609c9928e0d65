"""What the console does in a transaction, and the indexes that it goes by."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from payagg_testing.builders import MINUTE, NOW

from payagg.adapters.postgres.store import PostgresTransaction
from payagg.domain.audit import ActorRealm
from payagg.extensions.console.ports import SESSIONS


async def use(tx: PostgresTransaction) -> None:
    [listed, *_] = await tx.of(SESSIONS).of(ActorRealm.MERCHANT, "user 7")
    session = await tx.of(SESSIONS).find(listed.session)
    assert session == listed
    await tx.of(SESSIONS).touch(replace(session, seen_at=NOW + MINUTE))
    await tx.of(SESSIONS).end(session.realm, session.subject, session.session)
    await tx.of(SESSIONS).end_others(session.realm, session.subject, session.session)


IN_A_TRANSACTION: dict[str, tuple[Callable[[PostgresTransaction], Awaitable[Any]], set[str]]] = {
    "console sessions": (use, {"console_sessions_pkey", "console_sessions_of_subject"}),
    "console sessions that have ended": (
        lambda tx: tx.of(SESSIONS).forget(NOW + MINUTE),
        {"console_sessions_ends_at", "console_sessions_pkey"},
    ),
}
