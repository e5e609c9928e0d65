"""Rows for a benchmark, loaded the fast way: 1,000 businesses with one sandbox key each, and past payments by COPY."""

import psycopg

BUSINESSES = 1000


def secret(number: int) -> str:
    """The sandbox secret key of business `number`, counted from 1; the SQL below and load.lua agree."""
    return f"ssk_sand_{number:048x}"


def reference(number: int) -> str:
    """The reference of past payment `number`, counted from 1."""
    return f"PAY-20250101-{number:06X}"


def owner(number: int) -> int:
    """The business of past payment `number`."""
    return number % BUSINESSES + 1


def businesses(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO businesses (id, name, status, kyc_status, created_at, updated_at)
            SELECT 'biz_bench_' || n, 'Bench ' || n, 'ACTIVE', 'NOT_SUBMITTED', now(), now() FROM generate_series(1, %s) n
            """,
            [BUSINESSES],
        )
        connection.execute(
            """
            INSERT INTO api_keys (id, business_id, environment, name, public_key, secret_hash, secret_last4, status,
                                  last_used_at, created_at)
            SELECT 'key_bench_' || n, 'biz_bench_' || n, 'SANDBOX', 'bench', 'spk_sand_' || lpad(to_hex(n), 32, '0'),
                   sha256(('ssk_sand_' || lpad(to_hex(n), 48, '0'))::bytea), right(lpad(to_hex(n), 48, '0'), 4), 'ACTIVE',
                   now(), now()
            FROM generate_series(1, %s) n
            """,
            [BUSINESSES],
        )
        connection.execute("ANALYZE businesses; ANALYZE api_keys")


def payments(url: str, first: int, last: int) -> None:
    """Past payments first..last, settled, with their transition, event-free; triggers are off for the load alone."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            """
            INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, customer_email,
                                  customer_name, callback_url, metadata, sequence, created_at, updated_at, expires_at,
                                  settled_at)
            SELECT 'PAY-20250101-' || upper(lpad(to_hex(n), 6, '0')), 'biz_bench_' || (n %% 1000 + 1), 'SANDBOX', 150000,
                   'NGN', 'SUCCESS', 'sandbox', 'payer@example.com', 'Ada Obi', 'https://shop.example/thanks',
                   '{"order": "1"}', 2, at, at, at + interval '1 hour', at
            FROM generate_series(%s::int, %s::int) n, LATERAL (SELECT timestamptz '2025-01-01' + n * interval '1 s' AS at) t
            """,
            [first, last],
        )
        connection.execute(
            """
            INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
            SELECT 'PAY-20250101-' || upper(lpad(to_hex(n), 6, '0')), s, CASE s WHEN 1 THEN 'INITIATED' ELSE 'PENDING' END,
                   CASE s WHEN 1 THEN 'PENDING' ELSE 'SUCCESS' END, CASE s WHEN 1 THEN 'PROCESS' ELSE 'SUCCEED' END,
                   'bench', timestamptz '2025-01-01' + n * interval '1 s'
            FROM generate_series(%s::int, %s::int) n, generate_series(1, 2) s
            """,
            [first, last],
        )
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE payments")
        connection.execute("VACUUM ANALYZE transitions")


def ended_deliveries(url: str, endpoints: dict[str, int]) -> None:
    """For each endpoint id, so many deliveries that arrived, with the endpoint's counter beside them."""
    with psycopg.connect(url, autocommit=True) as connection:
        for endpoint_id, number in endpoints.items():
            connection.execute(
                """
                INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret, secret_last4,
                                               successful, created_at, updated_at)
                VALUES (%s, 'biz_bench_1', 'SANDBOX', 'https://shop.example/hook', '{}', true, 'x', 'abcd', %s, now(), now())
                """,
                [endpoint_id, number],
            )
            connection.execute(
                """
                INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, endpoint_id,
                                        lane, status, attempts, created_at)
                SELECT 'PAY-20250103-' || upper(lpad(to_hex(n), 6, '0')), %s || lpad(n::text, 9, '0'), 'evt_' || n,
                       'payment.success', 1, 'biz_bench_1', 'SANDBOX', %s, %s, 'DELIVERED', 1, now()
                FROM generate_series(1, %s) n
                """,
                [f"dlv_{endpoint_id}_", endpoint_id, endpoint_id, number],
            )
        connection.execute("VACUUM ANALYZE deliveries")
