"""What doctor says of a move that was broken by hand, or that stands still; and what is asked of two real databases."""

from datetime import timedelta

import psycopg
from payagg_testing.builders import AN_ADMIN, NOW, a_payment

from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.store import PostgresStore
from payagg.extensions.cells.postgres import DepartureRows
from tests.integration.postgres.cells.moving import REFERENCES, SHOP, Removal
from tests.support.postgres_world import execute

TWICE = "a payment, a key and a business are here, or in another cell, or on their way there"
STANDS = "no move to another cell has been under way for more than an hour"


def breaches(url: str, rule: str) -> list[str]:
    return next(finding.breaches for finding in examine(url).rules if finding.rule == rule)


async def test_doctor_names_what_is_in_two_places(removal: Removal, store: PostgresStore, database_url: str) -> None:
    await removal.command().run(SHOP, by=AN_ADMIN)
    assert breaches(database_url, TWICE) == []
    async with store.begin() as tx:
        await tx.payments.add(a_payment(reference=REFERENCES[0]))
    assert breaches(database_url, TWICE) == [REFERENCES[0]]


async def test_doctor_names_a_move_that_stands_still(removal: Removal, store: PostgresStore, database_url: str) -> None:
    now = await store.now()
    async with store.begin() as tx:
        await tx.of(DepartureRows).close(SHOP, "PBX", now)
        assert await tx.of(DepartureRows).take(SHOP, now - timedelta(hours=2), 1) == 1
        [packed] = await tx.of(DepartureRows).under_way(SHOP, 10)
    assert breaches(database_url, STANDS) == [packed.reference]
    execute(database_url, "UPDATE moved_businesses SET at = at - interval '2 hours'")
    assert set(breaches(database_url, STANDS)) == {packed.reference, SHOP}


async def test_it_waits_for_a_transaction_that_began_before_the_keys_were_closed(
    store: PostgresStore, database_url: str
) -> None:
    with psycopg.connect(database_url) as slow:
        slow.execute("SELECT 1")
        async with store.begin() as tx:
            seen = await tx.of(DepartureRows).open_transactions()
        assert any(one.startswith(f"{slow.info.backend_pid} ") for one in seen)
        slow.commit()
        async with store.begin() as tx:
            assert not seen & await tx.of(DepartureRows).open_transactions()


async def test_a_payment_that_somebody_holds_is_left_for_later(
    removal: Removal, store: PostgresStore, database_url: str
) -> None:
    await removal.command()._close(SHOP, AN_ADMIN)
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT FROM payments WHERE reference = %s FOR NO KEY UPDATE", [REFERENCES[0]])
        holder.execute("SELECT FROM deliveries WHERE reference = %s FOR UPDATE", [REFERENCES[1]])
        async with store.begin() as tx:
            assert await tx.of(DepartureRows).take(SHOP, NOW, 10) == len(REFERENCES) - 2
            assert await tx.of(DepartureRows).has_payments(SHOP)
    async with store.begin() as tx:
        assert await tx.of(DepartureRows).take(SHOP, NOW, 10) == 2
