"""The statements of moves between cells, but for those of arrivals.

Rows travel as text of JSON, as the server wrote it, so that nothing here rounds a number.
"""

# ruff: noqa: S608 - only our own words are put into the texts

import json

from payagg.adapters.postgres.statement import Statement
from payagg.extensions.cells.domain import KEY_DIGITS
from payagg.extensions.cells.places import By

# Found by `reference`; a payment's idempotency key by the payment's own columns.
OWNED = (
    *("transitions", "attempts", "provider_calls", "anomalies", "resolutions"),
    *("events", "event_metadata", "deliveries"),
)
_KEY = "k.business_id = p.business_id AND k.environment = p.environment AND k.key = p.idempotency_key"


def constant(**values: str | int | None) -> str:
    """A JSON object; what would be taken for the names of parameters is escaped."""
    return f"CAST('{json.dumps(values)}' AS jsonb)".replace(":", "\\:")


_UNCOUNTED = constant(successful=0, failed=0, purged=0, removed_at=None)
OF_BUSINESS = Statement("SELECT business_id, cell, state, at FROM moved_businesses WHERE business_id = :business_id")
# The forwarding record first: while a business moves, its row is here too.
CELL_OF = {
    By.KEY: Statement("""
SELECT cell, rows IS NOT NULL FROM moved_keys WHERE secret_hash = decode(:name, 'hex')
UNION ALL SELECT NULL, false FROM api_keys WHERE secret_hash = decode(:name, 'hex') ORDER BY 1 LIMIT 1
"""),
    By.BUSINESS: Statement("""
SELECT cell, state <> 'LEFT' FROM moved_businesses WHERE business_id = :name
UNION ALL SELECT NULL, false FROM businesses WHERE id = :name ORDER BY 1 LIMIT 1
"""),
    By.REFERENCE: Statement("""
SELECT cell, rows IS NOT NULL FROM moved_payments WHERE reference = :name
UNION ALL SELECT NULL, false FROM payments WHERE reference = :name ORDER BY 1 LIMIT 1
"""),
}
ACTIVE_KEYS = Statement(
    f"SELECT left(encode(secret_hash, 'hex'), {KEY_DIGITS}) FROM api_keys WHERE status = 'ACTIVE' ORDER BY 1"
)
BUSINESSES_HERE = Statement(
    "SELECT id FROM businesses EXCEPT SELECT business_id FROM moved_businesses WHERE state = 'ARRIVING' ORDER BY 1"
)
SCHEMA = Statement("SELECT string_agg(version_num, ' ') FROM alembic_version")
# Two servers may be copies of one, so what they were made as tells nothing. A database may have several cells.
DATABASE = Statement(
    "SELECT concat_ws(' ', oid, extract(epoch FROM pg_postmaster_start_time()), current_schema()) FROM pg_database"
    " WHERE datname = current_database()"
)
IN_USE = Statement("""
SELECT gateway_id FROM business_gateways WHERE business_id = :business_id
UNION SELECT g.id FROM gateways g WHERE EXISTS (
    SELECT FROM attempts a JOIN payments p ON p.reference = a.reference
    WHERE a.gateway_id = g.id AND a.next_ask_at IS NOT NULL AND p.business_id = :business_id
)""")
ENVIRONMENTS = Statement("""
SELECT environment FROM api_keys WHERE business_id = :business_id AND status = 'ACTIVE'
UNION SELECT rows->>'environment' FROM moved_keys WHERE business_id = :business_id AND rows->>'status' = 'ACTIVE'
UNION SELECT one.name FROM (VALUES ('SANDBOX'), ('LIVE')) AS one(name) WHERE EXISTS (
    SELECT FROM payments WHERE business_id = :business_id AND environment = one.name AND amount > 0
)""")
SEALED = Statement("""
SELECT e.id, s.blob FROM webhook_endpoints e, LATERAL (VALUES (e.secret), (e.previous_secret)) AS s(blob)
WHERE s.blob IS NOT NULL AND (CAST(:business_id AS text) IS NULL OR e.business_id = :business_id) LIMIT :limit
""")

LOCK_BUSINESS = Statement("SELECT id FROM businesses WHERE id = :business_id FOR UPDATE")
KEYS_LEAVE = Statement("""
WITH gone AS (DELETE FROM api_keys WHERE business_id = :business_id RETURNING *)
INSERT INTO moved_keys (secret_hash, business_id, cell, rows, at)
SELECT secret_hash, business_id, CAST(:cell AS text), to_jsonb(gone), CAST(:at AS timestamptz) FROM gone
""")
MEMBERS_LEAVE = Statement("""
WITH gone AS (DELETE FROM members WHERE business_id = :business_id RETURNING *)
INSERT INTO moved_businesses (business_id, cell, state, rows, at)
SELECT CAST(:business_id AS text), CAST(:cell AS text), 'LEAVING', coalesce(jsonb_agg(to_jsonb(gone)), '[]'),
    CAST(:at AS timestamptz) FROM gone
""")
# As CREATE INDEX CONCURRENTLY waits for them: a transaction may have its snapshot and no number yet. One that has
# written nothing in a minute is none of ours, which are ended long before; it may be a dump that reads for hours.
OPEN_TRANSACTIONS = Statement("""
SELECT l.pid || ' ' || l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND a.backend_type = 'client backend'
AND l.pid <> pg_backend_pid() AND (a.backend_xid IS NOT NULL OR a.xact_start > clock_timestamp() - interval '1 minute')
""")
PROFILE = Statement(f"""
SELECT CAST(jsonb_build_object(
    'business', (SELECT to_jsonb(b) FROM businesses b WHERE b.id = :business_id),
    'business_gateways', (
        SELECT coalesce(jsonb_agg(to_jsonb(g)), '[]') FROM business_gateways g WHERE g.business_id = :business_id
    ),
    'webhook_endpoints', (
        SELECT coalesce(jsonb_agg(to_jsonb(e) || {_UNCOUNTED}), '[]') FROM webhook_endpoints e
        WHERE e.business_id = :business_id
    )
) AS text)""")
START = Statement("UPDATE moved_businesses SET state = 'MOVING' WHERE business_id = :business_id AND state = 'LEAVING'")
# Partial by what is true of every row: the index of a business's payments serves only who says so.
CHOOSE = Statement("""
SELECT reference FROM payments WHERE business_id = :business_id AND amount > 0
LIMIT :limit FOR UPDATE SKIP LOCKED
""")
# Under the lock of its payment nothing is added to it; what is here already may be somebody's for a while.
BUSY = Statement("""
WITH attempts_free AS MATERIALIZED (
    SELECT reference, number FROM attempts
    WHERE reference = ANY(:references) AND NOT (state = 'CLAIMED' AND lease_until > :now) FOR UPDATE SKIP LOCKED
), deliveries_free AS MATERIALIZED (
    SELECT reference, id FROM deliveries
    WHERE reference = ANY(:references) AND NOT (token IS NOT NULL AND lease_until > :now) FOR UPDATE SKIP LOCKED
)
SELECT reference FROM attempts a WHERE reference = ANY(:references)
AND NOT EXISTS (SELECT FROM attempts_free f WHERE f.reference = a.reference AND f.number = a.number)
UNION SELECT reference FROM deliveries d WHERE reference = ANY(:references)
AND NOT EXISTS (SELECT FROM deliveries_free f WHERE f.reference = d.reference AND f.id = d.id)
""")
_PARTS = ", ".join(
    f"'{table}', (SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]') FROM {table} t WHERE t.reference = p.reference)"
    for table in OWNED
)
# What is archived stays in its file, which the other cell finds by the folder: numbers of parts are each cell's own.
_ARCHIVED = """
    SELECT coalesce(jsonb_agg(jsonb_build_object('payment', to_jsonb(a), 'part', to_jsonb(f))), '[]')
    FROM archived_payments a JOIN archive_parts f ON f.number = a.part WHERE a.reference = p.reference"""
PACK = Statement(f"""
INSERT INTO moved_payments (reference, business_id, cell, rows, at)
SELECT p.reference, p.business_id, m.cell, jsonb_build_object(
    'payment', to_jsonb(p),
    'archived', ({_ARCHIVED}),
    'idempotency_keys', (SELECT coalesce(jsonb_agg(to_jsonb(k)), '[]') FROM idempotency_keys k WHERE {_KEY}),
    {_PARTS}
), CAST(:now AS timestamptz)
FROM payments p JOIN moved_businesses m ON m.business_id = p.business_id WHERE p.reference = ANY(:references)
""")
REMOVE = (
    Statement(
        f"DELETE FROM idempotency_keys k USING payments p WHERE p.reference = ANY(CAST(:references AS text[]))"
        f" AND {_KEY}"
    ),
    *(
        Statement(f"DELETE FROM {table} WHERE reference = ANY(CAST(:references AS text[]))")
        for table in (*OWNED, "archived_payments", "payments")
    ),
)
HAS_PAYMENTS = Statement("SELECT EXISTS (SELECT FROM payments WHERE business_id = :business_id AND amount > 0)")
UNDER_WAY = Statement("""
SELECT reference, CAST(rows AS text) FROM moved_payments
WHERE business_id = :business_id AND rows IS NOT NULL ORDER BY reference LIMIT :limit
""")
ARRIVED = Statement("UPDATE moved_payments SET rows = NULL WHERE reference = ANY(CAST(:references AS text[]))")
BELONGINGS = Statement("""
SELECT CAST(jsonb_build_object(
    'api_keys', (SELECT coalesce(jsonb_agg(rows), '[]') FROM moved_keys WHERE business_id = :business_id),
    'members', (SELECT rows FROM moved_businesses WHERE business_id = :business_id),
    'webhook_endpoints', (
        SELECT coalesce(jsonb_agg(to_jsonb(e)), '[]') FROM webhook_endpoints e WHERE e.business_id = :business_id
    )
) AS text)""")
# The keys to the business row are held by the first two; it goes last.
LEAVE = tuple(
    Statement(text)
    for text in (
        "DELETE FROM webhook_endpoints WHERE business_id = :business_id",
        "DELETE FROM business_gateways WHERE business_id = :business_id",
        "DELETE FROM businesses WHERE id = :business_id",
        "UPDATE moved_keys SET rows = NULL WHERE business_id = :business_id",
        "UPDATE moved_businesses SET rows = NULL, state = 'LEFT' WHERE business_id = :business_id",
    )
)
