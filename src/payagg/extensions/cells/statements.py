"""The statements of moves between cells.

Rows travel as text of JSON, as the server wrote it, so that nothing here rounds a number. Where they arrive, every rule
of the schema holds: what may only begin in a first state is added in that, and makes its one move from there.
"""

# ruff: noqa: S608 - only our own words are put into the texts

import json

from payagg.adapters.postgres.statement import Statement
from payagg.extensions.cells.ports import KEY_DIGITS

# Found by `reference`; a payment's idempotency key by the payment's own columns.
OWNED = (
    *("transitions", "attempts", "provider_calls", "anomalies", "resolutions"),
    *("events", "event_metadata", "deliveries"),
)
_KEY = "k.business_id = p.business_id AND k.environment = p.environment AND k.key = p.idempotency_key"


def _constant(**values: str | int | None) -> str:
    """A JSON object; what would be taken for the names of parameters is escaped."""
    return f"CAST('{json.dumps(values)}' AS jsonb)".replace(":", "\\:")


_UNCOUNTED = _constant(successful=0, failed=0, purged=0, removed_at=None)
OF_BUSINESS = Statement(
    "SELECT business_id, cell, state, at FROM moved_businesses WHERE business_id = :business_id", reads=True
)
OF_PAYMENT = Statement(
    "SELECT business_id, cell, rows IS NOT NULL FROM moved_payments WHERE reference = :reference", reads=True
)
OF_KEY = Statement(
    "SELECT business_id, cell, rows IS NOT NULL FROM moved_keys WHERE secret_hash = :secret_hash", reads=True
)
ACTIVE_KEYS = Statement(
    f"SELECT left(encode(secret_hash, 'hex'), {KEY_DIGITS}) FROM api_keys WHERE status = 'ACTIVE' ORDER BY 1",
    reads=True,
)
BUSINESSES_HERE = Statement(
    "SELECT id FROM businesses EXCEPT SELECT business_id FROM moved_businesses WHERE state = 'ARRIVING' ORDER BY 1",
    reads=True,
)
SCHEMA = Statement("SELECT string_agg(version_num, ' ') FROM alembic_version", reads=True)
# Two servers may be copies of one, so what they were made as tells nothing. A database may have several cells.
DATABASE = Statement(
    "SELECT concat_ws(' ', oid, extract(epoch FROM pg_postmaster_start_time()), current_schema()) FROM pg_database"
    " WHERE datname = current_database()",
    reads=True,
)
IN_USE = Statement(
    """
SELECT gateway_id FROM business_gateways WHERE business_id = :business_id
UNION SELECT g.id FROM gateways g WHERE EXISTS (
    SELECT FROM attempts a JOIN payments p ON p.reference = a.reference
    WHERE a.gateway_id = g.id AND a.next_ask_at IS NOT NULL AND p.business_id = :business_id
)""",
    reads=True,
)
ENVIRONMENTS = Statement(
    """
SELECT environment FROM api_keys WHERE business_id = :business_id AND status = 'ACTIVE'
UNION SELECT rows->>'environment' FROM moved_keys WHERE business_id = :business_id AND rows->>'status' = 'ACTIVE'
UNION SELECT one.name FROM (VALUES ('SANDBOX'), ('LIVE')) AS one(name) WHERE EXISTS (
    SELECT FROM payments WHERE business_id = :business_id AND environment = one.name AND amount > 0
)""",
    reads=True,
)
SEALED = Statement(
    """
SELECT e.id, s.blob FROM webhook_endpoints e, LATERAL (VALUES (e.secret), (e.previous_secret)) AS s(blob)
WHERE s.blob IS NOT NULL AND (CAST(:business_id AS text) IS NULL OR e.business_id = :business_id) LIMIT :limit
""",
    reads=True,
)

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
OPEN_TRANSACTIONS = Statement(
    """
SELECT l.pid || ' ' || l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND a.backend_type = 'client backend'
AND l.pid <> pg_backend_pid() AND (a.backend_xid IS NOT NULL OR a.xact_start > clock_timestamp() - interval '1 minute')
""",
    reads=True,
)
PROFILE = Statement(
    f"""
SELECT CAST(jsonb_build_object(
    'business', (SELECT to_jsonb(b) FROM businesses b WHERE b.id = :business_id),
    'business_gateways', (
        SELECT coalesce(jsonb_agg(to_jsonb(g)), '[]') FROM business_gateways g WHERE g.business_id = :business_id
    ),
    'webhook_endpoints', (
        SELECT coalesce(jsonb_agg(to_jsonb(e) || {_UNCOUNTED}), '[]') FROM webhook_endpoints e
        WHERE e.business_id = :business_id
    )
) AS text)""",
    reads=True,
)
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
HAS_PAYMENTS = Statement(
    "SELECT EXISTS (SELECT FROM payments WHERE business_id = :business_id AND amount > 0)", reads=True
)
UNDER_WAY = Statement(
    """
SELECT reference, CAST(rows AS text) FROM moved_payments
WHERE business_id = :business_id AND rows IS NOT NULL ORDER BY reference LIMIT :limit
""",
    reads=True,
)
ARRIVED = Statement("UPDATE moved_payments SET rows = NULL WHERE reference = ANY(CAST(:references AS text[]))")
BELONGINGS = Statement(
    """
SELECT CAST(jsonb_build_object(
    'api_keys', (SELECT coalesce(jsonb_agg(rows), '[]') FROM moved_keys WHERE business_id = :business_id),
    'members', (SELECT rows FROM moved_businesses WHERE business_id = :business_id),
    'webhook_endpoints', (
        SELECT coalesce(jsonb_agg(to_jsonb(e)), '[]') FROM webhook_endpoints e WHERE e.business_id = :business_id
    )
) AS text)""",
    reads=True,
)
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


def _rows(table: str, source: str) -> str:
    """Rows of the table, from an array of JSON objects."""
    return f"jsonb_populate_recordset(CAST(NULL AS {table}), {source})"


def _alter_objects(source: str, change: str) -> str:
    """The array of JSON objects with another object laid over each, `one`."""
    return f"(SELECT coalesce(jsonb_agg(one || {change}), '[]') FROM jsonb_array_elements({source}) AS one)"


_HERE = "coalesce(CAST(:gateways AS jsonb) ->> (one ->> 'gateway_id'), one ->> 'gateway_id')"
_PROFILE = "CAST(:profile AS jsonb)"
ARRIVE = Statement("""
INSERT INTO moved_businesses (business_id, cell, state, at) VALUES (:business_id, :cell, 'ARRIVING', :at)
ON CONFLICT (business_id) DO UPDATE SET cell = excluded.cell, state = excluded.state, at = excluded.at, rows = NULL
""")
_SETTINGS = _alter_objects(f"{_PROFILE} -> 'business_gateways'", f"jsonb_build_object('gateway_id', {_HERE})")
PREPARE_BUSINESS = Statement(
    "INSERT INTO businesses SELECT * FROM "
    f"jsonb_populate_record(CAST(NULL AS businesses), {_PROFILE} -> 'business') ON CONFLICT DO NOTHING RETURNING id"
)
PREPARE_SETTINGS = Statement(f"INSERT INTO business_gateways SELECT * FROM {_rows('business_gateways', _SETTINGS)}")
_ENDPOINTS = _rows("webhook_endpoints", f"{_PROFILE} -> 'webhook_endpoints'")
PREPARE_ENDPOINTS = Statement(f"INSERT INTO webhook_endpoints SELECT * FROM {_ENDPOINTS}")

_BORN = _constant(status="INITIATED", sequence=0, settled_at=None, failure_reason=None)
_OPEN = _constant(status="OPEN", closed_by=None, closed_at=None, close_reason=None)
_CHANGES = {
    # Whoever held it there is not here; a charge is asked about at once.
    "attempts": f"jsonb_build_object('held_until', NULL, 'gateway_id', {_HERE})",
    "anomalies": _OPEN,
}


def _rows_of_business(table: str) -> str:
    source = f"packed -> '{table}'"
    if table in _CHANGES:
        source = _alter_objects(source, _CHANGES[table])
    # A call to a provider may have stayed when its payment left, and is met again when that comes back.
    return (
        f"{table}_in AS (INSERT INTO {table} SELECT t.* FROM new, {_rows(table, source)} AS t ON CONFLICT DO NOTHING)"
    )


# In one statement, so that the document is read once. What has yet to make its move comes back.
RECEIVE = Statement(f"""
WITH sent AS MATERIALIZED (
    SELECT packed FROM jsonb_array_elements(CAST(:payments AS jsonb)) AS packed
), added AS (
    INSERT INTO payments
    SELECT p.* FROM sent, jsonb_populate_record(CAST(NULL AS payments), (packed -> 'payment') || {_BORN}) AS p
    ORDER BY p.reference ON CONFLICT (reference) DO NOTHING RETURNING reference
), new AS MATERIALIZED (
    SELECT packed FROM sent JOIN added ON added.reference = packed -> 'payment' ->> 'reference'
), {", ".join(_rows_of_business(table) for table in ("idempotency_keys", *OWNED))}
SELECT packed -> 'payment' ->> 'reference', CAST(packed -> 'payment' AS text), CAST(packed -> 'anomalies' AS text),
    CAST(packed -> 'archived' AS text)
FROM new
""")
# What came INITIATED may be past its window: the sweep of expiry must meet it.
MEET_AGAIN = Statement("""
UPDATE expiry_progress SET until = first - interval '1 microsecond' FROM (
    SELECT min(expires_at) AS first FROM payments
    WHERE reference = ANY(CAST(:references AS text[])) AND status = 'INITIATED'
) AS arrived WHERE first <= until
""")
GROWN = Statement(f"""
UPDATE payments p SET status = was.status, sequence = was.sequence, settled_at = was.settled_at,
    failure_reason = was.failure_reason
FROM {_rows("payments", "CAST(:payments AS jsonb)")} AS was
WHERE p.reference = was.reference AND was.status <> 'INITIATED'
""")
WORKED_OFF = Statement(f"""
UPDATE anomalies a SET status = was.status, closed_by = was.closed_by, closed_at = was.closed_at,
    close_reason = was.close_reason
FROM jsonb_array_elements(CAST(:anomalies AS jsonb)) AS own, {_rows("anomalies", "own")} AS was
WHERE a.id = was.id AND was.status <> 'OPEN'
""")
_ARCHIVED_IN = "jsonb_array_elements(CAST(:archived AS jsonb)) AS own, jsonb_array_elements(own) AS one"
# As a part that was removed, or the archive here would look for what is left of it.
PARTS_ARRIVE = Statement(f"""
INSERT INTO archive_parts (day, folder, payments, last_reference, manifest, started_at, removed_at)
SELECT DISTINCT ON (part.folder) part.day, part.folder, part.payments, part.last_reference, part.manifest,
    part.started_at, coalesce(part.removed_at, part.started_at)
FROM {_ARCHIVED_IN}, jsonb_populate_record(CAST(NULL AS archive_parts), one -> 'part') AS part
ON CONFLICT (folder) DO NOTHING
""")
ARCHIVED_ARRIVE = Statement(f"""
INSERT INTO archived_payments (reference, part, attempts, paid)
SELECT was.reference, part.number, was.attempts, was.paid
FROM {_ARCHIVED_IN}, jsonb_populate_record(CAST(NULL AS archived_payments), one -> 'payment') AS was,
    archive_parts part WHERE part.folder = one -> 'part' ->> 'folder'
""")
BACK_AGAIN = Statement("DELETE FROM moved_payments WHERE reference = ANY(CAST(:references AS text[]))")

_BELONGINGS = "CAST(:belongings AS jsonb)"
OPEN = Statement(
    "DELETE FROM moved_businesses WHERE business_id = :business_id AND state = 'ARRIVING' RETURNING business_id"
)
_ACTIVE = _alter_objects(f"{_BELONGINGS} -> 'api_keys'", _constant(status="ACTIVE", revoked_at=None))
_KEYS = _rows("api_keys", f"{_BELONGINGS} -> 'api_keys'")
_COUNTED = _rows("webhook_endpoints", f"{_BELONGINGS} -> 'webhook_endpoints'")
MOVE_IN = tuple(
    Statement(text)
    for text in (
        f"INSERT INTO members SELECT * FROM {_rows('members', f'{_BELONGINGS} -> {chr(39)}members{chr(39)}')}",
        f"INSERT INTO api_keys SELECT * FROM {_rows('api_keys', _ACTIVE)}",
        f"UPDATE api_keys k SET status = was.status, revoked_at = was.revoked_at FROM {_KEYS} AS was"
        " WHERE k.id = was.id AND was.status <> 'ACTIVE'",
        f"DELETE FROM moved_keys m USING {_KEYS} AS k WHERE m.secret_hash = k.secret_hash",
        # What deliveries of payments that came before counted here stays beside what was counted there.
        "UPDATE webhook_endpoints e SET successful = e.successful + was.successful, failed = e.failed + was.failed,"
        " purged = e.purged + was.purged, is_active = e.is_active AND was.is_active, removed_at = was.removed_at"
        f" FROM {_COUNTED} AS was WHERE e.id = was.id",
    )
)
