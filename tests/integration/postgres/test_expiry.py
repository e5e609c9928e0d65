"""The sweep of expiry reads from where it has been, and passes no payment by."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from payagg_testing.builders import DAY, HOUR, MINUTE, NOW

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.payments.expiry import sweep_expired
from payagg.domain.payment import Payment
from tests.support.assembly import services_over
from tests.support.postgres_world import execute, numbered

END = NOW + HOUR  # of the windows of payments initiated now
PROGRESS = "SELECT until FROM expiry_progress"


async def add(store: PostgresStore, number: int, expires_at: datetime = END) -> Payment:
    payment, created = await store.add_payment(replace(numbered(number), expires_at=expires_at))
    assert created
    return payment


async def swept(store: PostgresStore, now: datetime, limit: int = 9) -> list[str]:
    """Expires what the sweep finds."""
    async with store.begin() as tx:
        found = await tx.upkeep.lock_expired(now, limit)
        for payment in found:
            failed, transition = payment.expire()
            assert transition is not None
            await tx.payments.save(failed, transition)
    return [payment.reference for payment in found]


def progress(database_url: str) -> Any:
    [(until,)] = execute(database_url, PROGRESS)
    return until


async def test_a_sweep_goes_on_behind_the_payments_that_are_over(store: PostgresStore, database_url: str) -> None:
    first, second, third = [await add(store, n, END + n * MINUTE) for n in range(3)]
    assert await swept(store, END + 5 * MINUTE, limit=2) == [first.reference, second.reference]
    assert await swept(store, END + 5 * MINUTE) == [third.reference]
    assert await swept(store, END + 5 * MINUTE) == []
    assert progress(database_url) == third.expires_at


@pytest.mark.parametrize("ahead", [timedelta(), 365 * DAY])
async def test_a_payment_of_an_earlier_end_than_the_sweeps_clock_is_met(store: PostgresStore, ahead: timedelta) -> None:
    """A clock that was ahead has looked at nothing that is initiated after it was set back, and the worker may be away
    until it is that time."""
    over = await add(store, 1)
    assert await swept(store, END + ahead) == [over.reference]
    assert await swept(store, END + ahead) == []
    later = await add(store, 2, END + timedelta(microseconds=1))
    assert await swept(store, END + ahead + MINUTE) == [later.reference]


@pytest.mark.parametrize("later", [timedelta(), 20 * HOUR])
async def test_a_payment_is_met_though_one_of_a_clock_that_was_ahead_is_over(
    store: PostgresStore, database_url: str, later: timedelta
) -> None:
    """The worker may have been away when the clock was set back."""
    ahead = await add(store, 1, END + 2 * DAY)
    assert [await swept(store, END + 3 * DAY) for _ in range(2)] == [[ahead.reference], []]
    assert progress(database_url) == ahead.expires_at
    after = await add(store, 2)
    assert await swept(store, END + later) == [after.reference]
    assert await swept(store, END + later + MINUTE) == []
    assert progress(database_url) == after.expires_at
    assert await swept(store, END + 4 * DAY) == []


async def test_a_payment_that_is_locked_is_met_once_it_is_free(store: PostgresStore, database_url: str) -> None:
    held, free = await add(store, 1), await add(store, 2, END + MINUTE)
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT FROM payments WHERE reference = %s FOR UPDATE", (held.reference,))
        assert await swept(store, END + HOUR) == [free.reference]
        assert await swept(store, END + 2 * HOUR) == []
    assert await swept(store, END + 3 * HOUR) == [held.reference]


async def test_a_sweep_does_not_wait_for_another(store: PostgresStore, database_url: str) -> None:
    over = await add(store, 1)
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute(PROGRESS + " FOR UPDATE")
        assert await swept(store, END) == [over.reference]


@pytest.mark.error_lines("an expiry cannot be stored")
async def test_a_payment_whose_end_cannot_be_stored_keeps_no_other_open(
    store: PostgresStore, database_url: str
) -> None:
    broken, *others = [await add(store, n) for n in range(4)]
    execute(database_url, f"ALTER TABLE transitions ADD CONSTRAINT broken CHECK (reference <> '{broken.reference}')")
    assert [await sweep_expired(services_over(store).settlement) for _ in range(2)] == [len(others), 0]
    left = execute(database_url, "SELECT reference FROM payments WHERE status = 'INITIATED'")
    assert left == [(broken.reference,)]
