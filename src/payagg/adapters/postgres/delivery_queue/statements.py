"""The outbox's statements.

A claim takes what is due through the index `deliveries_next`. Where much is due, it walks the lanes instead, through
the index `deliveries_due` (a loose index scan): then it costs by the lanes with pending deliveries, never by how many
rows wait in them. A test keeps the plans.
"""

# ruff: noqa: S608 - only our own numbers and column names are put into the texts

from functools import cache

from payagg.adapters.postgres.repositories.endpoints import ENDPOINT
from payagg.adapters.postgres.repositories.webhook_events import DELIVERY, whole_body
from payagg.adapters.postgres.statement import Statement
from payagg.domain.delivery import ALONE_FROM
from payagg.domain.payment import SEQUENCE_MAX
from payagg.domain.values import CLOCK_SLACK
from payagg.domain.webhook import CONCURRENCY_MAX, CONCURRENCY_START

LANES_PER_CLAIM = 1_000  # visited by one statement; the next claim continues where it ended
DUE_MAX = 1_000  # deliveries, those in flight included; more are due only when workers cannot keep up
ENDED_PER_LANE = 200  # deliveries of a deactivated endpoint ended by one claim

# The partitions of all due deliveries, in any order: a claim's cost is what is due, not what waits. None when more than
# DUE_MAX are due; then the partitions are walked.
_DUE = f"""
WITH due AS (
    SELECT d.lane FROM deliveries d WHERE d.next_attempt_at <= :now
    ORDER BY d.next_attempt_at LIMIT {DUE_MAX + 1}
), seen AS (
    SELECT count(*) > {DUE_MAX} AS is_more FROM due
), lanes(lane, n) AS (
    SELECT own.lane, row_number() OVER (ORDER BY random())
    FROM (SELECT DISTINCT lane FROM due) own CROSS JOIN seen WHERE NOT seen.is_more
"""
# The lease of a worker that died while the database's clock was ahead does not last until that date.
_IS_LEASE_AHEAD = f"d.lease_until > CAST(:until AS timestamptz) + interval '{CLOCK_SLACK.seconds} seconds'"
_WALKED = f"""
WITH RECURSIVE lanes(lane, n) AS (
    (SELECT d.lane, 1 FROM deliveries d WHERE d.status = 'PENDING' AND d.lane > :after ORDER BY d.lane LIMIT 1)
    UNION ALL
    SELECT (SELECT d.lane FROM deliveries d WHERE d.status = 'PENDING' AND d.lane > l.lane ORDER BY d.lane LIMIT 1),
           l.n + 1
    FROM lanes l WHERE l.lane IS NOT NULL AND l.n < {LANES_PER_CLAIM}
"""
# Candidates are chosen from the snapshot, as many as a partition may have minus those in flight, and then locked: two
# workers that choose the same rows share them instead of taking the next ones, so a partition never exceeds its limit.
# A failing endpoint gets one attempt at a time, and all failing endpoints and slow lanes share `failing` attempts,
# first the lane with the fewest in flight, so none waits for ever: many dead merchants must not hold every worker's
# slots. The chosen rows are locked by key alone: with the status or the instant in the condition, a server with old
# statistics would walk all due rows once for each candidate. The window is wider because rows in flight are at its
# front, and late commits may sort before them. Poison messages are not in it: they are claimed one by one, below, and
# must not delay the others.
_TAKEN = f"""
), free AS (
    SELECT w.reference, w.id, w.place, l.n, l.lane, s.is_on, s.is_sharing AS is_failing,
           row_number() OVER (PARTITION BY s.is_sharing
                              ORDER BY CASE WHEN s.is_sharing THEN w.place + w.in_flight + random() END) AS lot
    FROM lanes l
    CROSS JOIN LATERAL (
        SELECT coalesce(e.is_active, true) AS is_on,
               coalesce(e.is_active AND e.failing_since IS NOT NULL, false) AS is_failing,
               coalesce(e.is_active, true) AND (
                   e.failing_since IS NOT NULL OR l.lane IN (SELECT unnest(CAST(:slow AS text[])))
               ) AS is_sharing,
               coalesce(e.concurrency, {CONCURRENCY_START}) AS most
        FROM (VALUES (l.lane)) AS own(lane) LEFT JOIN webhook_endpoints e ON e.id = own.lane
    ) s
    CROSS JOIN LATERAL (
        SELECT r.*, row_number() OVER (PARTITION BY r.is_leased ORDER BY r.next_attempt_at, r.id) AS place,
               count(*) FILTER (WHERE r.is_leased) OVER () AS in_flight
        FROM (
            SELECT d.reference, d.id, d.next_attempt_at,
                   coalesce(d.lease_until > :now AND NOT {_IS_LEASE_AHEAD}, false) AS is_leased
            FROM deliveries d
            WHERE d.status = 'PENDING' AND d.lane = l.lane AND d.next_attempt_at <= :now
              AND (d.lost_tries < {ALONE_FROM} OR d.token IS NOT NULL OR NOT s.is_on)
            ORDER BY d.next_attempt_at, d.id
            LIMIT CASE WHEN s.is_on THEN 4 * s.most ELSE {ENDED_PER_LANE} END
        ) r
    ) w
    WHERE NOT w.is_leased AND w.place <= CASE WHEN s.is_failing THEN 1 - w.in_flight
                                              WHEN s.is_on THEN s.most - w.in_flight
                                              ELSE {ENDED_PER_LANE} END
), candidates AS (
    SELECT * FROM free WHERE NOT is_failing OR lot <= :failing ORDER BY n, place LIMIT :limit
), locked AS (
    SELECT d.reference, d.id, c.is_on, c.is_failing, d.token IS NOT NULL AS is_lapsed
    FROM candidates c
    JOIN deliveries d ON d.reference = c.reference AND d.id = c.id
    WHERE coalesce(d.next_attempt_at, 'infinity') <= :now
      AND (d.lease_until IS NULL OR d.lease_until <= :now OR {_IS_LEASE_AHEAD})
    FOR UPDATE OF d SKIP LOCKED
"""
# A lost attempt is repeated under its number. One delivery sent again by hand without end must not make the column
# overflow: the statement would fail for every merchant.
_LEASED = f"""
), taken AS (
    UPDATE deliveries d
    SET attempts = least(
            d.attempts + CASE WHEN k.is_on AND NOT k.is_lapsed AND d.lost_tries = 0 THEN 1 ELSE 0 END, {SEQUENCE_MAX}
        ),
        lost_tries = d.lost_tries + CASE WHEN k.is_on AND k.is_lapsed THEN 1 ELSE 0 END,
        last_attempt_at = CASE WHEN k.is_on THEN :now ELSE d.last_attempt_at END,
        lease_until = :until,
        token = gen_random_uuid()::text
    FROM locked k
    WHERE d.reference = k.reference AND d.id = k.id
    RETURNING {", ".join(f"d.{name}" for name in DELIVERY.names)}, k.is_on, k.is_failing, k.is_lapsed
)
"""
_BODY = whole_body("v")
_WITH_BODIES = """
LEFT JOIN taken t ON true
LEFT JOIN events v ON v.reference = t.reference AND v.sequence = t.sequence
ORDER BY t.next_attempt_at, t.id
"""
CLAIM_DUE = Statement(f"{_DUE}{_TAKEN}{_LEASED} SELECT seen.is_more, t.*, {_BODY} FROM seen {_WITH_BODIES}")
# Where the next claim continues: after the last partition chosen or read; null after the last one.
CLAIM = Statement(f"""{_WALKED}{_TAKEN}{_LEASED}, walked AS (
    SELECT CASE WHEN count(*) >= :limit THEN max(lane)
                ELSE (SELECT CASE WHEN count(lane) >= {LANES_PER_CLAIM} THEN max(lane) END FROM lanes) END AS last_seen
    FROM candidates
)
SELECT w.last_seen, t.*, {_BODY}
FROM walked w
{_WITH_BODIES}""")
CLAIM_SUSPECT = Statement(f"""
WITH locked AS (
    SELECT d.reference, d.id, coalesce(e.is_active, true) AS is_on,
           coalesce(e.is_active AND e.failing_since IS NOT NULL, false) AS is_failing, false AS is_lapsed
    FROM deliveries d LEFT JOIN webhook_endpoints e ON e.id = d.lane
    WHERE d.lost_tries > {ALONE_FROM - 1} AND d.token IS NULL AND d.next_attempt_at <= :now
    ORDER BY d.next_attempt_at
    LIMIT 1
    FOR UPDATE OF d SKIP LOCKED
{_LEASED}
SELECT NULL, t.*, {_BODY} FROM (VALUES (1)) AS one(row)
{_WITH_BODIES}""")

SIGNERS = Statement(f"""
SELECT {", ".join(f"e.{name}" for name in ENDPOINT.names)}
FROM webhook_endpoints e
WHERE e.id = ANY(:ids) OR (e.business_id = ANY(:businesses) AND e.is_active)
ORDER BY e.created_at, e.id
""")

# Endpoints first and in one order, so two workers that record at once wait and do not deadlock. An attempt at an
# address changed since is counted, but is no evidence of the present endpoint; neither is one that failed through us,
# which has no address. Returns the endpoints it deactivated.
FINISH = Statement(f"""
WITH results AS (
    SELECT * FROM unnest(
        CAST(:references AS text[]), CAST(:ids AS text[]), CAST(:tokens AS text[]), CAST(:statuses AS text[]),
        CAST(:retries AS timestamptz[]), CAST(:codes AS int[]), CAST(:errors AS text[]), CAST(:durations AS int[]),
        CAST(:times AS timestamptz[]), CAST(:gone AS boolean[]), CAST(:tried AS boolean[]), CAST(:lost AS boolean[]),
        CAST(:urls AS text[])
    ) AS r(reference, id, token, status, retry_at, code, error, duration_ms, at, gone, tried, lost, url)
), endpoints AS (
    SELECT e.id, e.url, e.is_active FROM webhook_endpoints e WHERE e.id = ANY(:lanes) ORDER BY e.id FOR UPDATE
), written AS (
    UPDATE deliveries d
    SET status = r.status, next_attempt_at = r.retry_at, lease_until = NULL, token = NULL,
        last_status_code = r.code, last_error = r.error,
        lost_tries = CASE WHEN r.lost THEN d.lost_tries ELSE 0 END,
        duration_ms = CASE WHEN r.tried THEN r.duration_ms ELSE d.duration_ms END
    FROM results r
    WHERE (SELECT count(*) FROM endpoints) >= 0 AND d.reference = r.reference AND d.id = r.id AND d.token = r.token
    RETURNING d.endpoint_id, r.status, r.at, r.gone, r.tried, r.url, r.duration_ms
), told AS (
    SELECT w.endpoint_id, w.status, w.at, w.gone, w.duration_ms, w.tried AND w.url = e.url AS is_current
    FROM written w JOIN endpoints e ON e.id = w.endpoint_id
), totals AS (
    SELECT endpoint_id, count(*) FILTER (WHERE status = 'DELIVERED') AS successful,
           count(*) FILTER (WHERE status = 'FAILED') AS failed,
           bool_or(is_current AND status = 'DELIVERED') AS has_success, bool_or(is_current AND gone) AS is_gone,
           count(*) FILTER (WHERE is_current AND status = 'DELIVERED' AND duration_ms <= :well) AS good,
           bool_or(is_current AND status = 'DELIVERED' AND duration_ms > :well) AS is_slow,
           bool_or(is_current AND status <> 'DELIVERED') AS is_bad,
           min(at) FILTER (WHERE is_current) AS first_at, max(at) FILTER (WHERE is_current) AS last_at
    FROM told GROUP BY endpoint_id
), moved AS (
    UPDATE webhook_endpoints e
    SET successful = e.successful + t.successful, failed = e.failed + t.failed,
        concurrency = CASE WHEN t.is_bad THEN greatest(1, e.concurrency / 2)
                           WHEN t.is_slow THEN greatest(least(e.concurrency, {CONCURRENCY_START}), e.concurrency / 2)
                           ELSE least({CONCURRENCY_MAX}, e.concurrency + t.good) END,
        failing_since = CASE WHEN t.has_success THEN NULL ELSE coalesce(e.failing_since, t.first_at) END,
        is_active = e.is_active AND NOT t.is_gone
            AND (t.has_success OR coalesce(t.last_at - coalesce(e.failing_since, t.first_at) < :hopeless, true))
    FROM totals t JOIN endpoints b ON b.id = t.endpoint_id
    WHERE e.id = t.endpoint_id
    RETURNING e.id, e.business_id, b.is_active AND NOT e.is_active AS is_switched_off
)
SELECT id, business_id FROM moved WHERE is_switched_off
""")

RELEASE = Statement("""
UPDATE deliveries d
SET attempts = d.attempts - CASE WHEN d.lost_tries = 0 THEN 1 ELSE 0 END, lease_until = NULL, token = NULL
FROM unnest(CAST(:references AS text[]), CAST(:ids AS text[]), CAST(:tokens AS text[])) AS r(reference, id, token)
WHERE d.reference = r.reference AND d.id = r.id AND d.token = r.token
""")

# Few are leased, and these are at the front.
OLDEST = Statement("""
SELECT min(next_attempt_at) FROM (
    SELECT next_attempt_at FROM deliveries
    WHERE next_attempt_at <= :now AND (lease_until IS NULL OR lease_until <= :now) ORDER BY next_attempt_at LIMIT 1
) AS first
""")


# These walk owners and, per owner, the oldest ids: they need no index beyond the readers'. A number in the text tells
# the planner how few rows there are; of a parameter it guesses a share of the table, and then reads all of it.
@cache
def purge_deliveries(limit: int) -> Statement:
    return Statement(f"""
WITH old AS (
    (SELECT o.reference, o.id
     FROM webhook_endpoints e
     CROSS JOIN LATERAL (
         SELECT d.reference, d.id FROM deliveries d
         WHERE d.endpoint_id = e.id AND d.id < :before AND d.status <> 'PENDING' ORDER BY d.id LIMIT {limit:d}
     ) o
     LIMIT {limit:d})
    UNION ALL
    (SELECT d.reference, d.id FROM deliveries d
     WHERE d.endpoint_id IS NULL AND d.id < :before AND d.status <> 'PENDING' ORDER BY d.id LIMIT {limit:d})
), gone AS (
    DELETE FROM deliveries d USING old WHERE d.reference = old.reference AND d.id = old.id RETURNING d.endpoint_id
), purged AS (
    UPDATE webhook_endpoints e SET purged = e.purged + g.n
    FROM (SELECT endpoint_id, count(*) AS n FROM gone GROUP BY endpoint_id) g WHERE e.id = g.endpoint_id
)
SELECT count(*) FROM gone
""")


DUE = Statement(
    "SELECT count(*) FROM (SELECT FROM deliveries WHERE next_attempt_at <= :now"
    " AND (lease_until IS NULL OR lease_until <= :now) LIMIT :limit) AS due"
)
DEACTIVATED = Statement("SELECT count(*) FROM webhook_endpoints WHERE NOT is_active AND removed_at IS NULL")
# A transaction that still saw it at its removal has long emitted its last delivery.
PURGE_ENDPOINTS = Statement("""
WITH gone AS (
    DELETE FROM webhook_endpoints e WHERE e.id IN (
        SELECT r.id FROM webhook_endpoints r
        WHERE r.removed_at < now() - interval '1 hour'
          AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = r.id)
        LIMIT :limit
    ) RETURNING 1
)
SELECT count(*) FROM gone
""")


# Only in the default partition: the others are dropped with their weeks (partitions.py). An array and a subquery of one
# row are looked up by index, where a join might read a table.
@cache
def purge_events(limit: int) -> Statement:
    return Statement(f"""
WITH old AS (
    SELECT o.reference, o.sequence
    FROM businesses b CROSS JOIN (VALUES ('SANDBOX'), ('LIVE')) AS environments(environment)
    CROSS JOIN LATERAL (
        SELECT v.reference, v.sequence FROM events_other v
        WHERE v.business_id = b.id AND v.environment = environments.environment AND v.id < :before
          AND (SELECT d.id FROM deliveries d WHERE d.reference = v.reference AND d.event_id = v.id LIMIT 1) IS NULL
        ORDER BY v.id LIMIT {limit:d}
    ) o
    LIMIT {limit:d}
), gone AS (
    DELETE FROM events_other v
    WHERE v.reference = ANY(ARRAY(SELECT reference FROM old))
      AND (v.reference, v.sequence) IN (SELECT reference, sequence FROM old)
    RETURNING v.reference, v.metadata_digest
)
SELECT count(*), array_agg(DISTINCT reference ORDER BY reference) FILTER (WHERE metadata_digest IS NOT NULL) FROM gone
""")
