"""Deliveries for a benchmark: many of them, falling due when told, and the log that is read of them."""

import asyncio
import time
from base64 import b64decode
from statistics import median

import psycopg

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.security import AesVault
from payagg.domain.webhook import secret_context


def page_ms(url: str, endpoint_id: str, offset: int) -> float:
    """The median of 30 readings of 20 rows and the total, in ms."""

    async def read() -> float:
        store = PostgresStore(url, pool_size=2, pgbouncer=False)
        taken = []
        for _ in range(30):
            begun = time.monotonic()
            async with store.begin() as tx:
                rows, _ = await tx.webhooks.deliveries(endpoint_id, offset, 20)
            assert len(rows) == 20
            taken.append((time.monotonic() - begun) * 1000)
        await store.close()
        return round(median(taken), 2)

    return asyncio.run(read())


def fall_due(url: str, first: int, number: int, *, after: float = 0.0, each: float = 0.0) -> None:
    """Lets `number` of the seeded deliveries, from the one numbered `first` on, fall due in `after` seconds, and from
    then on one every `each` seconds."""
    with psycopg.connect(url) as connection:
        connection.execute(
            """
            UPDATE deliveries SET next_attempt_at = now() + make_interval(secs => %(after)s + (n - %(first)s) * %(each)s)
            FROM generate_series(%(first)s::int, %(last)s) n
            WHERE reference = 'PAY-20250102-' || upper(lpad(to_hex(n), 6, '0')) AND id = 'dlv_bench_' || n
            """,
            {"first": first, "last": first + number - 1, "after": after, "each": each},
        )


def settle(url: str) -> None:
    """Leaves nothing of what was loaded for the server to do later."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE deliveries")
        connection.execute("CHECKPOINT")


def seed_deliveries(url: str, environment: dict[str, str], target: str, number: int) -> None:
    """`number` deliveries over 200 endpoints, due some day, through the same tables that a settlement writes."""
    kid, _, key = environment["PAYAGG_ENCRYPTION_KEYS"].partition(":")
    vault = AesVault(((kid, b64decode(key)),))
    with psycopg.connect(url) as connection:
        for n in range(200):
            connection.execute(
                """
                INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret, secret_last4,
                                               created_at, updated_at)
                VALUES (%s, %s, 'SANDBOX', %s, '{}', true, %s, 'abcd', now(), now())
                """,
                [
                    f"whe_bench_{n}",
                    f"biz_bench_{n + 1}",
                    f"{target}/{n}",
                    vault.seal(b"k" * 32, secret_context(f"whe_bench_{n}")),
                ],
            )
        connection.execute(
            """
            INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at)
            SELECT 'PAY-20250102-' || upper(lpad(to_hex(n), 6, '0')), 1, 'evt_bench_' || n, 'payment.success',
                   'biz_bench_' || (n %% 200 + 1), 'SANDBOX', convert_to(repeat('{"a": "0123456789"}', 40), 'UTF8'), now()
            FROM generate_series(1, %s) n
            """,
            [number],
        )
        connection.execute(
            """
            INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, endpoint_id,
                                    lane, status, attempts, next_attempt_at, created_at)
            SELECT reference, 'dlv_bench_' || substr(id, 11), id, type, 1, business_id, environment,
                   'whe_bench_' || (substr(id, 11)::int % 200), 'whe_bench_' || (substr(id, 11)::int % 200), 'PENDING', 0,
                   now() + interval '1 day', now()
            FROM events WHERE id LIKE 'evt_bench_%'
            """
        )
        connection.commit()
        connection.autocommit = True
        connection.execute("ANALYZE deliveries")
        connection.execute("ANALYZE events")
