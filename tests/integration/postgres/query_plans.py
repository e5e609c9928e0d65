"""Full tables, and the plans that the server makes there for what the product sends.

Connections of our own stand where the product's are: each statement is explained, run and undone just before it is
sent, planned as our sessions ask for, behind PgBouncer by the role's settings (docs/operating/postgres.md).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from payagg_testing.builders import NOW
from psycopg.abc import Buffer
from psycopg.pq import Escaping, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from payagg.adapters.postgres.connections import BY_INDEX, DriverConnection, connector
from payagg.adapters.postgres.fast_path.statements import FastPath
from payagg.adapters.postgres.partitions import TABLES, make
from payagg.adapters.postgres.pipeline import BEGIN, COMMIT, ROLLBACK, StatementConnection
from payagg.adapters.postgres.pool import StatementPool
from payagg.adapters.postgres.statement import Statement
from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.postgres.week import WEEK, Week
from tests.support.postgres_rules import superuser_url
from tests.support.postgres_world import execute

Values = Sequence[Buffer | None]
LARGE = frozenset(
    {"payments", "idempotency_keys", "transitions", "attempts", "provider_calls", "anomalies", "events", "deliveries"}
    | {"inbox", "api_keys", "audit", "event_metadata", "archived_payments", "console_sessions"}
)
ROWS = 100_000
BUSINESSES = 1_000
BIG = "biz_0"  # one merchant has a fifth of everything
LATER = NOW + WEEK  # the day of every other payment
EVERYBODY = "till@example.com"  # what some merchants write for every payer

# An eighth of the payments have expired, an eighth are still open, a quarter are PENDING and due to be asked about; one
# delivery in 47 is due, one inbound event in ten waits for another try.
FILL = f"""
SET session_replication_role = replica;
CREATE TEMP TABLE given AS
SELECT n, 'PAY-' || CASE n % 2 WHEN 0 THEN '{NOW:%Y%m%d}' ELSE '{LATER:%Y%m%d}' END || '-' || lpad(n::text, 6, '0')
           AS reference, n % 4 AS kind,
       CASE WHEN n % 5 = 0 THEN 0 ELSE n % {BUSINESSES} END AS owner,
       lpad(to_hex({int(NOW.timestamp() * 1000)} + n), 12, '0') || lpad(to_hex(n), 20, '0') AS id
FROM generate_series(0, {ROWS - 1}) n;
INSERT INTO businesses
SELECT 'biz_' || n, 'Shop ' || n, 'ACTIVE', 'APPROVED', '{NOW}', '{NOW}' FROM generate_series(0, {BUSINESSES - 1}) n;
INSERT INTO members SELECT id, 'ada', 'OWNER' FROM businesses;
INSERT INTO api_keys
SELECT 'key_' || n, 'biz_' || n % {BUSINESSES}, 'SANDBOX', 'till', 'spk_' || n, sha256(n::text::bytea), '0000',
       'ACTIVE', NULL, '{NOW}', NULL FROM generate_series(0, {BUSINESSES * 4 - 1}) n;
INSERT INTO gateways
SELECT 'gw_' || n, 'gateway-' || n, 'Gateway', NULL, NULL, n, false, 'ACTIVE', NULL, NULL, NULL, '{NOW}', '{NOW}'
FROM generate_series(1, 5) n;
INSERT INTO business_gateways
SELECT 'biz_' || n, 'gw_' || g, n % 7 <> 0, NULL, NULL, false, '{NOW}', '{NOW}'
FROM generate_series(0, {BUSINESSES - 1}) n, generate_series(1, 5) g;
INSERT INTO webhook_endpoints (id, business_id, environment, url, events, is_active, secret, secret_last4, successful,
                               created_at, updated_at)
SELECT 'whe_' || n, 'biz_' || n, 'SANDBOX', 'https://shop.example/', '{{}}', true, 's', 'abcd',
       CASE WHEN n = 0 THEN {ROWS // 5} ELSE 80 END, '{NOW}', '{NOW}' FROM generate_series(0, {BUSINESSES - 1}) n;
INSERT INTO payments (reference, business_id, environment, amount, currency, status, customer_email, idempotency_key,
                      sequence, created_at, updated_at, expires_at, settled_at)
SELECT reference, 'biz_' || owner, 'SANDBOX', 150000, 'NGN',
       (ARRAY['INITIATED', 'PENDING', 'SUCCESS', 'FAILED'])[kind + 1],
       CASE WHEN n % 10 = 0 THEN '{EVERYBODY}' WHEN n % 2 = 0 THEN 'payer' || n % 1000 || '@example.com' END,
       'order ' || n, least(kind, 1), '{NOW}'::timestamptz - ({ROWS} - n) * interval '1 second', '{NOW}',
       '{NOW}'::timestamptz + (n % 8 - 3) * interval '1 minute' - n * interval '1 microsecond',
       CASE WHEN kind > 1 THEN timestamptz '{NOW}' END
FROM given;
INSERT INTO idempotency_keys SELECT business_id, environment, idempotency_key, reference FROM payments;
INSERT INTO transitions
SELECT reference, 1, 'INITIATED', 'PENDING', 'PROCESS', 'payer', NULL, '{NOW}' FROM given WHERE kind > 0;
INSERT INTO attempts (reference, number, gateway_id, gateway, provider_reference, token, state, lease_until, scenario,
                      hand_off_kind, hand_off_url, created_at, handed_off_at, asks, next_ask_at, environment)
SELECT reference, 1, 'gw_1', 'provider_a', reference, 'token', 'HANDED_OFF', '{NOW}', NULL,
       'REDIRECT', 'https://p.example/',
       '{NOW}', '{NOW}', 0, CASE WHEN kind = 1 THEN '{NOW}'::timestamptz + (n % 8 - 3) * interval '1 minute' END,
       'SANDBOX'
FROM given;
INSERT INTO provider_calls
SELECT reference, 'call_' || id, 1, 'provider_a', 'fetch', 'PENDING', NULL, 20, 'reconciler', '{NOW}' FROM given;
INSERT INTO archived_payments SELECT 'OLD' || substr(reference, 4), 1, 'provider_a HANDED_OFF', reference FROM given;
INSERT INTO anomalies (id, reference, kind, source, details, at, status, closed_by, closed_at, close_reason,
                       event_sequence, business_id, environment)
SELECT 'anm_' || id, reference, CASE WHEN n % 50 = 0 THEN 'DISPUTE' ELSE 'PARTIAL_REFUND' END, 'provider_a',
       '{{"state": "opened", "disputeId": "7", "amounts": [7]}}', '{NOW}'::timestamptz + n * interval '1 millisecond',
       'CLOSED', 'ada', '{NOW}', 'Done.', 2, 'biz_' || owner, 'SANDBOX'
FROM given;
INSERT INTO events
SELECT reference, 1, 'evt_' || id, 'payment.pending', 'biz_' || owner, 'SANDBOX', '{{"data":{{"metadata":null}}}}',
       '{NOW}', 20, sha256('') FROM given;
INSERT INTO event_metadata SELECT reference, sha256(''), '{{"order":7}}' FROM given;
INSERT INTO deliveries (reference, id, event_id, event_type, sequence, business_id, environment, endpoint_id, lane,
                        status, attempts, next_attempt_at, created_at)
SELECT reference, 'dlv_' || id, 'evt_' || id, 'payment.pending', 1, 'biz_' || owner, 'SANDBOX', 'whe_' || owner,
       'whe_' || owner, CASE WHEN n % 47 = 7 THEN 'PENDING' ELSE 'DELIVERED' END, 1,
       CASE WHEN n % 47 = 7 THEN '{NOW}'::timestamptz - n * interval '1 millisecond' END, '{NOW}'
FROM given;
INSERT INTO inbox
SELECT 'inb_' || id, 'provider_a', 'SANDBOX', sha256(n::text::bytea), '{{}}', '{NOW}', 0,
       CASE WHEN n % 10 = 0 THEN '{NOW}'::timestamptz - n * interval '1 millisecond' END, NULL, NULL FROM given;
INSERT INTO audit
SELECT 'aud_' || id, '{NOW}'::timestamptz + n * interval '1 millisecond', 'merchant', 'user ' || owner, '192.0.2.1',
       'request', 'webhook.' || (ARRAY['create', 'update', 'test'])[n % 3 + 1], 'webhook', 'whe_' || n % 5000,
       'biz_' || owner, '{{}}'
FROM given;
INSERT INTO console_sessions
SELECT sha256(n::text::bytea), 'merchant', 'user ' || owner, NULL, '{NOW}', '{NOW}',
       '{NOW}'::timestamptz + n * interval '1 second' FROM given;
INSERT INTO rate_hits SELECT 'inbound:' || n, '{{"1": 1}}', '{NOW}' FROM generate_series(1, 5000) n;
INSERT INTO tallies SELECT '["requests","GET","/' || n || '","200"]', n FROM generate_series(1, 500) n;
DROP TABLE given;
"""


def nth(number: int) -> str:
    """The reference of payment `number`: INITIATED, PENDING, SUCCESS or FAILED by the remainder of four."""
    return f"PAY-{LATER if number % 2 else NOW:%Y%m%d}-{number:06d}"


# The rows that wait for a sweep, which come and go while the rest of a table stays.
WAITING = {
    "payments": "status = 'INITIATED'",
    "attempts": "next_ask_at IS NOT NULL",
    "deliveries": "status = 'PENDING'",
    "inbox": "next_attempt_at IS NOT NULL",
}

MERCHANTS = """
SELECT c.oid::regclass::text, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
AND a.attname IN ('business_id', 'endpoint_id', 'lane')
"""


def fill(database_url: str) -> None:
    """Events lie half in one week of several that have partitions, and half in none of them."""
    make(database_url, "PAY", NOW)
    make(database_url, "PAY", LATER)
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table in TABLES:
            connection.execute(f"DROP TABLE {Week.of('PAY', LATER.date()).table(table)}".encode())
        connection.execute(FILL.encode())
        connection.execute("VACUUM ANALYZE")


def as_of_a_start(database_url: str) -> None:
    """The server's statistics are then of one merchant, and of a time when nothing waited, as they are when a rush
    begins; pages have changed since they were vacuumed, so that an index alone tells little."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table, column in connection.execute(MERCHANTS).fetchall():
            alone = "n_distinct = 1, n_distinct_inherited = 1"
            connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET ({alone})".encode())
        for table, waits in WAITING.items():
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
            connection.execute(f"CREATE TEMP TABLE waiting_{table} AS SELECT * FROM {table} WHERE {waits}".encode())
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"DELETE FROM {table} WHERE {waits}".encode())
        connection.execute("VACUUM ANALYZE")
        for table in WAITING:
            connection.execute(f"INSERT INTO {table} SELECT * FROM waiting_{table}".encode())
    execute(superuser_url(database_url), "UPDATE pg_class SET relallvisible = 0 WHERE relkind = 'r'")


def parents(database_url: str) -> dict[str, str]:
    """What a partition, and an index of one, is a part of. An empty partition may be read in any way: it is of none."""
    rows = execute(
        database_url,
        "SELECT c.relname::text,"
        " CASE WHEN c.relkind = 'r' AND pg_relation_size(c.oid) = 0 THEN '' ELSE p.relname END"
        " FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent",
    )
    return {part: whole for part, whole in rows}  # noqa: C416


@dataclass(frozen=True)
class Visit:
    """How one node of a plan met a large table, and how many of its rows it looked at."""

    table: str
    index: str | None
    rows: int


@dataclass(frozen=True)
class Plan:
    name: str  # of what was being done
    statement: str
    visits: list[Visit]

    def __str__(self) -> str:
        return f"{self.name}: {self.visits}\n{self.statement}"


@dataclass
class Recorder:
    """The plans of every statement that is sent while a name is given. `parents`: see there."""

    parents: Mapping[str, str]
    plans: list[Plan] = field(default_factory=list)
    name: str | None = None

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        self.name = name
        try:
            yield
        finally:
            self.name = None

    def record(self, connection: StatementConnection, statement: Statement, values: Values) -> None:
        if self.name is not None and statement not in (BEGIN, COMMIT, ROLLBACK):
            seen = visits(explained(connection, statement, values), self.parents)
            self.plans.append(Plan(self.name, statement.sql.decode(), list(seen)))


class ExplainingConnection(StatementConnection):
    """Sends one statement at a time, each in the state that it is about to meet."""

    def __init__(self, connection: DriverConnection, recorder: Recorder) -> None:
        super().__init__(connection)
        self._recorder = recorder

    async def _exchange(self) -> list[PGresult]:
        unsent, results = self._unsent, []
        for one in unsent:
            self._recorder.record(self, one.statement, one.values)
            self._unsent = [one]
            results += await super()._exchange()
        return results


@dataclass(frozen=True)
class Watched:
    """The store as it sends through PgBouncer, without settings that favour indexes, and the hot statements in both
    ways."""

    store: PostgresStore
    hot: FastPath
    bounced: FastPath
    direct: StatementPool

    async def close(self) -> None:
        await self.hot.close()
        await self.store.close()
        await self.direct.close()


def watched(database_url: str, recorder: Recorder) -> Watched:
    store = PostgresStore(database_url, pool_size=6, pgbouncer=True)
    direct = StatementPool(connector(database_url, pgbouncer=False), 2)
    for pool in (store.pool, direct):

        async def new(pool: StatementPool = pool) -> StatementConnection:
            return ExplainingConnection(await pool._connect(), recorder)

        pool._new = new  # type: ignore[method-assign]
    return Watched(store, FastPath(direct), FastPath(store.pool), direct)


def explained(connection: StatementConnection, statement: Statement, values: Values) -> dict[str, Any]:
    """The plan with what it did, in the state and on the connection that the statement is about to meet."""
    wire = connection._wire
    wire.exit_pipeline_mode()
    given = ["NULL" if value is None else Escaping(wire).escape_literal(value).decode() for value in values]
    inside = wire.transaction_status == TransactionStatus.INTRANS
    begin, end = ("SAVEPOINT plan", "ROLLBACK TO plan; RELEASE plan") if inside else ("BEGIN", "ROLLBACK")

    def run(text: str) -> Any:
        result = wire.exec_(text.encode())
        assert result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK), result.get_error_message()
        return result.get_value(0, 0) if result.ntuples else None

    run(begin)
    for name, value in BY_INDEX.items():
        run(f"SET LOCAL {name} = {value}")
    prepared = wire.prepare(b"explained", statement.sql)
    assert prepared.status == ExecStatus.COMMAND_OK, prepared.get_error_message()
    arguments = f"({', '.join(given)})" if given else ""
    found = run(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE explained {arguments}")
    run("DEALLOCATE explained")
    run(end)
    wire.enter_pipeline_mode()
    plan: dict[str, Any] = json.loads(found)[0]["Plan"]
    return plan


def visits(node: dict[str, Any], parents: Mapping[str, str], above: str | None = None) -> Iterator[Visit]:
    """The scans of large tables, a partition's told as its parent's; a bitmap's index is told by the node below it."""
    loops = node.get("Actual Loops", 1)
    seen = sum(node.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"))
    table = node.get("Relation Name", above)
    table = parents.get(str(table), table)
    rows = round(seen * loops)
    if "Scan" in node["Node Type"] and table in LARGE and node["Node Type"] != "Bitmap Heap Scan":
        index = node.get("Index Name")
        yield Visit(table, parents.get(str(index), index), rows)
    for child in node.get("Plans", ()):
        yield from visits(child, parents, table if node["Node Type"].startswith("Bitmap") else None)
