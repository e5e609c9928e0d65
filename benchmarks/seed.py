"""Rows for a benchmark, loaded the fast way: 1,000 businesses with one sandbox key each, and past payments by COPY."""

from datetime import UTC, date, datetime, timedelta

import psycopg

from payagg.domain.payment_search import PaymentCursor

BUSINESSES = 1000
FIRST_DAY = date(2025, 1, 1)
WEEKS, A_WEEK = 12, 20_000
# The same in SQL, of a number `n`.
_NAME = (
    f"'PAY-' || to_char(date '{FIRST_DAY}' + 7 * (((n) - 1) / {A_WEEK} % {WEEKS})::int, 'YYYYMMDD')"
    " || '-' || upper(lpad(to_hex(n), 6, '0'))"
)


def secret(number: int) -> str:
    """The sandbox secret key of business `number`, counted from 1; the SQL below and load.lua agree."""
    return f"ssk_sand_{number:048x}"


def reference(number: int) -> str:
    """The reference of past payment `number`, counted from 1: of the first of WEEKS weeks, where there are few."""
    day = FIRST_DAY + timedelta(days=7 * ((number - 1) // A_WEEK % WEEKS))
    return f"PAY-{day:%Y%m%d}-{number:06X}"


def owner(number: int) -> int:
    """The business of past payment `number`."""
    return number % BUSINESSES + 1


def cursor(number: int) -> str:
    """The place of past payment `number` in every list."""
    return PaymentCursor(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=number), reference(number)).text


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
    name = _NAME.replace("%", "%%")
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            f"""
            INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, customer_email,
                                  customer_name, callback_url, metadata, sequence, created_at, updated_at, expires_at,
                                  settled_at)
            SELECT {name}, 'biz_bench_' || (n %% 1000 + 1), 'SANDBOX', 150000,
                   'NGN', 'SUCCESS', 'sandbox', 'payer@example.com', 'Ada Obi', 'https://shop.example/thanks',
                   '{{"order": "1"}}', 2, at, at, at + interval '1 hour', at
            FROM generate_series(%s::int, %s::int) n, LATERAL (SELECT timestamptz '2025-01-01' + n * interval '1 s' AS at) t
            """,
            [first, last],
        )
        connection.execute(
            f"""
            INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
            SELECT {name}, s, CASE s WHEN 1 THEN 'INITIATED' ELSE 'PENDING' END,
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


OPEN = 2_000
# Ids begin with their instant in ms, as the product draws them; those of the past lie within the last three hours.
_ID = "lpad(to_hex(({start} + n)::bigint), 12, '0') || lpad(to_hex(n), 20, '0')"


def open_reference(number: int) -> str:
    """The reference of open payment `number`, counted from 1: handed to the simulator, which says nothing yet."""
    return f"PAY-20250102-{number:06X}"


def endpoints(url: str) -> None:
    """One endpoint and one owner for each business."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret, secret_last4,
                                           created_at, updated_at)
            SELECT 'whe_bench_' || n, 'biz_bench_' || n, 'SANDBOX', 'https://shop.example/hook', '{}', true, 'x', 'abcd',
                   now(), now() FROM generate_series(1, %s) n
            """,
            [BUSINESSES],
        )
        connection.execute("INSERT INTO members SELECT id, 'bench', 'OWNER' FROM businesses")


def open_payments(url: str) -> None:
    _open(url, "PAY-20250102-", OPEN, next_ask_at="NULL")


def expired(url: str, round: int, past: int, number: int = 2_000) -> int:
    """INITIATED payments whose window has passed."""
    _run(url, *expired_payments(f"'PAY-202402{round:02}-' || upper(lpad(to_hex(n), 6, '0'))", number))
    return number


def expired_payments(reference: str, number: int) -> list[str]:
    return [
        f"""
        INSERT INTO payments (reference, business_id, environment, amount, currency, status, sequence, created_at,
                              updated_at, expires_at)
        SELECT {reference}, 'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 150000,
               'NGN', 'INITIATED', 0, now() - interval '2 hours', now(), now() - interval '1 hour'
        FROM generate_series(1, {number}) n
        """
    ]


def to_ask(url: str, round: int, past: int, number: int = 200) -> int:
    """Handed-over payments that are due to be asked about."""
    return _open(url, f"PAY-202403{round:02}-", number, next_ask_at="now() - interval '1 minute'")


def inbound(url: str, round: int, past: int, number: int = 500) -> int:
    """Events that wait in the inbox, about settled payments from everywhere."""
    _run(
        url,
        f"""
        INSERT INTO inbox (id, provider, environment, digest, body, received_at, attempts, next_attempt_at)
        SELECT 'inb_due_{round}_' || n, 'provider_a', 'SANDBOX', sha256(('due {round} ' || n)::bytea),
               convert_to('{{"event":"charge.success","data":{{"status":"success","domain":"test","currency":"NGN",'
                          || '"amount":150000,"reference":"' || {_name(f"n * {past // number}")} || '"}}}}', 'UTF8'),
               now(), 1, now() - interval '1 minute'
        FROM generate_series(1, {number}) n
        """,
    )
    return number


def expired_deliveries(url: str, round: int, past: int, number: int = 2_500) -> int:
    """Deliveries and their events past retention."""
    days_ago = "(extract(epoch FROM now() - interval '40 days') * 1000)"
    reference = f"'PAY-202404{round:02}-' || upper(lpad(to_hex(n), 6, '0'))"
    _run(url, events(1, number, days_ago, reference), deliveries(1, number, days_ago, reference))
    return 2 * number


def due_deliveries(url: str, round: int, past: int, number: int = 5_000) -> int:
    """Deliveries that are due, over all endpoints."""
    start = "(extract(epoch FROM now()) * 1000)"
    reference = f"'PAY-202405{round:02}-' || upper(lpad(to_hex(n), 6, '0'))"
    due = deliveries(1, number, start, reference).replace("'DELIVERED', 1, NULL", "'PENDING', 0, now()")
    _run(url, events(1, number, start, reference), due)
    return number


def _open(url: str, prefix: str, number: int, next_ask_at: str) -> int:
    _run(url, *handed_over(f"'{prefix}' || upper(lpad(to_hex(n), 6, '0'))", number, next_ask_at))
    return number


def handed_over(reference: str, number: int, next_ask_at: str) -> list[str]:
    """Payments at the simulator, which says nothing of them."""
    return [
        f"""
        INSERT INTO payments (reference, business_id, environment, amount, currency, status, gateway, sequence, created_at,
                              updated_at, expires_at)
        SELECT {reference}, 'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 150000, 'NGN', 'PENDING', 'sandbox', 1, now(), now(),
               now() + interval '30 days' FROM generate_series(1, {number}) n
        """,
        f"""
        INSERT INTO transitions (reference, sequence, from_status, to_status, trigger, actor, at)
        SELECT {reference}, 1, 'INITIATED', 'PENDING', 'PROCESS', 'bench', now() FROM generate_series(1, {number}) n
        """,
        f"""
        INSERT INTO attempts (reference, number, gateway, provider_reference, token, state, lease_until, scenario,
                              hand_off_kind, hand_off_url, created_at, handed_off_at, asks, next_ask_at)
        SELECT {reference}, 1, 'sandbox', {reference}, 'token', 'HANDED_OFF', now(), 'no_answer', 'SIMULATOR',
               'https://pay.example/', now(), now(), 0, {next_ask_at} FROM generate_series(1, {number}) n
        """,
    ]


def _keys(url: str, first: int, last: int) -> None:
    _run(
        url,
        f"""
        INSERT INTO idempotency_keys (business_id, environment, key, reference)
        SELECT 'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 'order-' || n, {_NAME} FROM generate_series({first}, {last}) n
        """,
    )


def _attempts(url: str, first: int, last: int) -> None:
    _run(
        url,
        f"""
        INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until,
                              hand_off_kind, hand_off_url, created_at, handed_off_at, asks)
        SELECT {_NAME}, 1, 'gw_provider_a', 'provider_a', {_NAME}, 'token', 'HANDED_OFF', now(), 'REDIRECT',
               'https://pay.example/', now(), now(), 1 FROM generate_series({first}, {last}) n
        """,
    )


def _calls(url: str, first: int, last: int) -> None:
    _run(
        url,
        f"""
        INSERT INTO provider_calls (reference, id, attempt, gateway, operation, result, duration_ms, actor, at)
        SELECT {_NAME}, 'call_' || {_ID.format(start=_START)}, 1, 'provider_a', 'fetch_charge', 'SUCCEEDED', 200, 'bench',
               now() FROM generate_series({first}, {last}) n
        """,
    )


def _outbox(url: str, first: int, last: int) -> None:
    _run(url, events(first, last, _START, _NAME), deliveries(first, last, _START, _NAME))
    _run(
        url,
        f"""
        UPDATE webhook_endpoints e SET successful = successful + n.number
        FROM (SELECT n % 1000 + 1 AS owner, count(*) AS number FROM generate_series({first}, {last}) n GROUP BY 1) n
        WHERE e.id = 'whe_bench_' || n.owner
        """,
    )


def _inbox(url: str, first: int, last: int) -> None:
    _run(
        url,
        f"""
        INSERT INTO inbox (id, provider, environment, digest, body, received_at, attempts, handled_at, result)
        SELECT 'inb_' || {_ID.format(start=_START)}, 'provider_a', 'SANDBOX', sha256(n::text::bytea), '{{}}', now(), 1, now(),
               'APPLIED' FROM generate_series({first}, {last}) n
        """,
    )


_START = "(extract(epoch FROM now()) * 1000 - 10000000)"
LOADS = (payments, _outbox, _keys, _attempts, _calls, _inbox)


def events(first: int, last: int, start: str, reference: str) -> str:
    return f"""
        INSERT INTO events (reference, sequence, id, type, business_id, environment, body, created_at)
        SELECT {reference}, 1, 'evt_' || {_ID.format(start=start)}, 'payment.success', 'biz_bench_' || (n % 1000 + 1),
               'SANDBOX', convert_to('{{"type":"payment.success","data":{{}}}}', 'UTF8'), now()
        FROM generate_series({first}, {last}) n
        """


def deliveries(first: int, last: int, start: str, reference: str) -> str:
    return f"""
        INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, endpoint_id, lane,
                                status, attempts, next_attempt_at, created_at)
        SELECT {reference}, 'dlv_' || {_ID.format(start=start)}, 'evt_' || {_ID.format(start=start)}, 'payment.success', 1,
               'biz_bench_' || (n % 1000 + 1), 'SANDBOX', 'whe_bench_' || (n % 1000 + 1), 'whe_bench_' || (n % 1000 + 1),
               'DELIVERED', 1, NULL, now() FROM generate_series({first}, {last}) n
        """


def _name(number: str) -> str:
    return _NAME.replace("(n)", f"({number})")


def _run(url: str, *statements: str) -> None:
    """Each in order, in one transaction; triggers are off, for the machines are not what is measured."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(statement.encode())
