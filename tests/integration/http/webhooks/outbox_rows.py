"""Many rows at once for the outbox's tests."""

import psycopg

from payagg.adapters.security import AesVault
from payagg.domain.webhook import secret_context
from tests.support.assembly import KEYS

SIGNING_KEY = b"s" * 32


def load_endpoints(url: str, prefix: str, count: int, address: str) -> None:
    """Active SANDBOX endpoints `<prefix>0`, `<prefix>1`, ... of one business, all with SIGNING_KEY."""
    vault = AesVault(KEYS)
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO businesses VALUES ('biz_1', 'Shop', 'ACTIVE', 'APPROVED', now(), now()) ON CONFLICT DO NOTHING"
        )
        rows = [
            (f"{prefix}{n}", address, vault.seal(SIGNING_KEY, secret_context(f"{prefix}{n}"))) for n in range(count)
        ]
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret,"
                " secret_last4, created_at, updated_at)"
                " VALUES (%s, 'biz_1', 'SANDBOX', %s, '{}', true, %s, 'abcd', now(), now())",
                rows,
            )


def load_deliveries(url: str, prefix: str, count: int, lanes: int, due: str, status: str = "PENDING") -> None:
    """`count` deliveries with their events, spread over the endpoints `<prefix>0` ... and due at the SQL `due`."""
    with psycopg.connect(url) as connection:
        first = connection.execute("SELECT count(*) FROM events").fetchone()
        start = first[0] if first else 0
        connection.execute(
            """
            INSERT INTO events
            SELECT 'PAY-' || n, 1, 'evt_' || lpad(to_hex(n), 32, '0'), 'payment.success', 'biz_1', 'SANDBOX',
                   convert_to('{"n":' || n || '}', 'UTF8'), now() FROM generate_series(%s::int, %s::int) n
            """,
            (start, start + count - 1),
        )
        connection.execute(
            f"""
            INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment,
                   endpoint_id, lane, status, attempts, next_attempt_at, created_at)
            SELECT 'PAY-' || n, 'dlv_' || lpad(to_hex(n), 32, '0'), 'evt_' || lpad(to_hex(n), 32, '0'),
                   'payment.success', 1, 'biz_1', 'SANDBOX', %(prefix)s || (n %% %(lanes)s),
                   %(prefix)s || (n %% %(lanes)s), %(status)s, 0,
                   CASE WHEN %(status)s = 'PENDING' THEN {due} END, now()
            FROM generate_series(%(start)s::int, %(end)s::int) n
            """,
            {"prefix": prefix, "lanes": lanes, "status": status, "start": start, "end": start + count - 1},
        )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE deliveries")
        connection.execute("VACUUM ANALYZE events")
