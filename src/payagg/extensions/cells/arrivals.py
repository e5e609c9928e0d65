"""The statements of the cell where a business arrives: rows made of what the other cell packed. Every rule of the
schema holds: what may only begin in a first state is added in that, and makes its one move from there."""

# ruff: noqa: S608 - only our own words are put into the texts

from payagg.adapters.postgres.statement import Statement
from payagg.extensions.cells.statements import OWNED, constant


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

_BORN = constant(status="INITIATED", sequence=0, settled_at=None, failure_reason=None)
_OPEN = constant(status="OPEN", closed_by=None, closed_at=None, close_reason=None)
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
_ACTIVE = _alter_objects(f"{_BELONGINGS} -> 'api_keys'", constant(status="ACTIVE", revoked_at=None))
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
