"""What arrives from another cell on a database with windows that have ended."""

from payagg_testing.builders import DAY, MINUTE

from payagg.adapters.postgres.store import PostgresStore
from payagg.extensions.cells.postgres import ArrivalRows
from payagg.extensions.cells.statements import OWNED
from tests.integration.postgres.test_expiry import END, add, progress, swept
from tests.support.postgres_world import execute


async def test_a_payment_that_comes_from_another_cell_past_its_window_is_met(
    store: PostgresStore, database_url: str
) -> None:
    late, later = await add(store, 1), await add(store, 2, END + MINUTE)
    parts = ", ".join(f"'{table}', '[]'::jsonb" for table in ("archived", "idempotency_keys", *OWNED))
    packed = f"SELECT jsonb_build_object('payment', to_jsonb(p), {parts})::text FROM payments p WHERE reference = %s"
    [(rows,)] = execute(database_url, packed, values=[late.reference])
    execute(database_url, "DELETE FROM payments WHERE reference = %s", values=[late.reference])
    assert [await swept(store, END + DAY) for _ in range(2)] == [[later.reference], []]
    assert progress(database_url) == later.expires_at
    async with store.begin() as tx:
        assert await tx.of(ArrivalRows).receive([rows], {}) == 1
    assert await swept(store, END + DAY) == [late.reference]
