"""The money rules, each as one query for violations. Read-only, in one snapshot, bounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, text

from payagg.adapters.postgres.connections import sync_engine
from payagg.adapters.postgres.damage import DAMAGES, Damage
from payagg.adapters.postgres.errors import translate_errors
from payagg.adapters.postgres.partitions import weeks
from payagg.adapters.postgres.repositories.upkeep import bounds
from payagg.adapters.postgres.week import WEEK
from payagg.adapters.system import APART_SECONDS, SystemClock, apart
from payagg.domain.payment import PAYMENT
from payagg.domain.reconciliation import MatchBucket
from payagg.domain.webhook import ANOMALY_EVENT_FOR, EventType

AHEAD_ENOUGH = 2 * WEEK  # the worker creates more, if it may
SHOWN = 20  # references of a broken rule, refused events, days and findings
ANOMALIES_SHOWN = 100
EXPLAIN = "`payagg explain REFERENCE` tells what happened. A row that somebody changed is put back from a backup."
STATEMENT_SECONDS = 600
LOCK_SECONDS = 5


def _told_by(*events: EventType) -> list[str]:
    return sorted(kind.value for kind, event in ANOMALY_EVENT_FOR.items() if event in events)


WORDS = {
    "final": sorted(status.value for status in PAYMENT.final),
    "notices": sorted({event.value for event in ANOMALY_EVENT_FOR.values()}),
    "told_by": sorted(f"{kind.value} {event.value}" for kind, event in ANOMALY_EVENT_FOR.items()),
    "told": sorted(kind.value for kind in ANOMALY_EVENT_FOR),
    "of_paid": _told_by(EventType.PAYMENT_REFUNDED, EventType.PAYMENT_DISPUTED),
    "attention": _told_by(EventType.PAYMENT_ATTENTION),
    "moves": sorted(
        f"{now.value} {by.value} {then.value}" for (now, by), then in PAYMENT.moves.items() if now is not then
    ),
}

# Every query selects the references that violate the rule.
RULES = {
    "a final payment has exactly one final transition, to its own status": """
        SELECT p.reference FROM payments p
        LEFT JOIN transitions t ON t.reference = p.reference AND t.to_status = ANY (:final)
        LEFT JOIN archived_payments x ON x.reference = p.reference
        WHERE p.status = ANY (:final) AND x.reference IS NULL GROUP BY p.reference, p.status
        HAVING count(t.sequence) <> 1 OR min(t.to_status) <> p.status""",
    "an open payment stands where its last transition ended": """
        SELECT p.reference FROM payments p LEFT JOIN transitions t USING (reference) WHERE p.status <> ALL (:final)
        GROUP BY p.reference, p.status
        HAVING coalesce((array_agg(t.to_status ORDER BY t.sequence DESC))[1], 'INITIATED') <> p.status""",
    "transitions and notices are numbered 1, 2, ... without a gap, up to the payment's sequence or beyond its end": """
        SELECT p.reference FROM payments p
        LEFT JOIN (SELECT reference, sequence FROM transitions UNION ALL
            SELECT reference, event_sequence FROM anomalies WHERE event_sequence IS NOT NULL) n USING (reference)
        LEFT JOIN archived_payments x ON x.reference = p.reference WHERE x.reference IS NULL
        GROUP BY p.reference, p.sequence, p.status
        HAVING count(n.sequence) <> count(DISTINCT n.sequence) OR coalesce(min(n.sequence), 1) <> 1
            OR coalesce(max(n.sequence), 0) <> count(n.sequence) OR count(n.sequence) < p.sequence
            OR (count(n.sequence) > p.sequence AND p.status <> ALL (:final))""",
    "a final payment's sequence is its last transition's": """
        SELECT p.reference FROM payments p JOIN transitions t USING (reference) WHERE p.status = ANY (:final)
        GROUP BY p.reference, p.sequence HAVING max(t.sequence) <> p.sequence""",
    "each transition is a move of the payment machine and starts where the last one ended": """
        SELECT reference FROM (
            SELECT reference, from_status, trigger, to_status,
                lag(to_status, 1, 'INITIATED') OVER (PARTITION BY reference ORDER BY sequence) AS stood
            FROM transitions) steps
        WHERE from_status <> stood OR concat_ws(' ', from_status, trigger, to_status) <> ALL (:moves)""",
    "each transition has exactly one event, of the matching type": """
        SELECT coalesce(t.reference, e.reference) FROM transitions t
        FULL JOIN (SELECT * FROM events WHERE type <> ALL (:notices)) e
            ON e.reference = t.reference AND e.sequence = t.sequence
        WHERE (e.id IS NULL AND t.at > now() - interval '29 days') OR t.reference IS NULL
            OR e.type <> 'payment.' || lower(t.to_status)""",
    "each notice of an anomaly has exactly one event, of the matching type": """
        SELECT coalesce(a.reference, e.reference) FROM anomalies a
        FULL JOIN (SELECT * FROM events WHERE type = ANY (:notices)) e
            ON e.reference = a.reference AND e.sequence = a.event_sequence
        WHERE (a.event_sequence IS NOT NULL AND e.id IS NULL AND a.at > now() - interval '29 days')
            OR (e.id IS NOT NULL AND (a.id IS NULL OR a.kind || ' ' || e.type <> ALL (:told_by)))""",
    # Facts stored before they had a business were notified under older rules.
    "what became of money that was paid is told, and so is money that does not fit its payment": """
        SELECT a.reference FROM anomalies a JOIN payments p USING (reference)
        WHERE a.event_sequence IS NULL AND a.business_id IS NOT NULL AND CASE
            WHEN a.kind = ANY (:of_paid) THEN p.status IN ('SUCCESS', 'REVERSED') OR EXISTS (
                SELECT FROM anomalies l WHERE l.reference = a.reference AND l.kind = 'LATE_SUCCESS')
            WHEN a.kind = ANY (:attention) THEN a.details ? 'reason' ELSE a.kind = ANY (:told) END""",
    "a payment with a told fact has adjustments": """
        SELECT p.reference FROM payments p JOIN anomalies a USING (reference)
        WHERE a.event_sequence IS NOT NULL AND a.business_id IS NOT NULL AND NOT p.has_adjustments""",
    "an event says the amount and currency of its payment": """
        SELECT e.reference FROM events e JOIN payments p USING (reference)
        CROSS JOIN LATERAL (SELECT convert_from(e.body, 'UTF8')::jsonb -> 'data' AS said) body
        WHERE (said ->> 'amount')::bigint <> p.amount OR said ->> 'currency' <> p.currency
            OR said ->> 'reference' <> p.reference OR said ->> 'environment' <> p.environment""",
    "a payment has at most one hand-off": """
        SELECT reference FROM attempts WHERE state = 'HANDED_OFF' GROUP BY reference HAVING count(*) > 1""",
    "a payment that was paid names the charge that was paid": """
        SELECT t.reference FROM transitions t WHERE t.to_status = 'SUCCESS' AND t.reason IS DISTINCT FROM 'SIMULATED'
        AND NOT EXISTS (SELECT FROM attempts a WHERE a.reference = t.reference
            AND a.provider_reference = coalesce(t.reason, a.provider_reference))""",
    "a PENDING payment has a hand-off": """
        SELECT p.reference FROM payments p WHERE p.status = 'PENDING' AND NOT EXISTS (
            SELECT FROM attempts a WHERE a.reference = p.reference AND a.state = 'HANDED_OFF')""",
    "a deleted gateway keeps no credentials beyond its settling, and no secret once no event of it is proved": """
        SELECT id FROM gateways WHERE status = 'DELETED' AND (
            (credentials IS NOT NULL AND updated_at < now() - interval '4 days')
            OR (replaced_secrets IS NOT NULL AND updated_at < now() - interval '181 days'))""",
    "no test payment ever met a provider": """
        SELECT p.reference FROM payments p JOIN attempts a USING (reference)
        WHERE p.is_test AND a.gateway <> 'sandbox'""",
    "no LIVE payment ever met the simulator": """
        SELECT p.reference FROM payments p WHERE p.environment = 'LIVE' AND (p.gateway = 'sandbox'
            OR EXISTS (SELECT FROM attempts a WHERE a.reference = p.reference AND a.gateway = 'sandbox')
            OR EXISTS (SELECT FROM transitions t WHERE t.reference = p.reference AND t.reason = 'SIMULATED'))""",
    "an attempt, an event and a delivery belong to a payment of their environment": """
        SELECT a.reference FROM attempts a LEFT JOIN payments p USING (reference)
            WHERE p.reference IS NULL OR (p.environment <> a.environment AND a.next_ask_at IS NOT NULL)
        UNION ALL SELECT e.reference FROM events e LEFT JOIN payments p USING (reference)
            WHERE p.reference IS NULL OR p.environment <> e.environment OR p.business_id <> e.business_id
        UNION ALL SELECT d.reference FROM deliveries d LEFT JOIN payments p USING (reference)
            WHERE p.reference IS NULL OR p.environment <> d.environment OR p.business_id <> d.business_id""",
    "metadata that lies apart from its event exists": """
        SELECT e.reference FROM events e LEFT JOIN event_metadata m
            ON m.reference = e.reference AND m.digest = e.metadata_digest
        WHERE e.metadata_digest IS NOT NULL AND m.reference IS NULL""",
    "a delivery carries an event that exists": """
        SELECT d.reference FROM deliveries d
        LEFT JOIN events e ON e.reference = d.reference AND e.id = d.event_id WHERE e.id IS NULL""",
    "an event goes to one endpoint at most once": """
        SELECT reference FROM deliveries GROUP BY reference, event_id, endpoint_id, url HAVING count(*) > 1""",
    "an idempotency key names one payment, which carries it": """
        SELECT p.reference FROM payments p LEFT JOIN idempotency_keys k
            ON k.business_id = p.business_id AND k.environment = p.environment AND k.key = p.idempotency_key
        WHERE p.idempotency_key IS NOT NULL AND k.reference IS DISTINCT FROM p.reference
            AND (p.settled_at IS NULL OR p.settled_at > now() - interval '29 days')
        UNION ALL SELECT k.reference FROM idempotency_keys k LEFT JOIN payments p USING (reference)
        WHERE (k.business_id, k.environment, k.key)
            IS DISTINCT FROM (p.business_id, p.environment, p.idempotency_key)""",
    "a payment, a key and a business are here, or in another cell, or on their way there": """
        SELECT reference FROM moved_payments JOIN payments USING (reference)
        UNION ALL SELECT business_id FROM moved_keys m JOIN api_keys k USING (secret_hash, business_id)
        UNION ALL SELECT business_id FROM moved_businesses m JOIN businesses b ON b.id = m.business_id
            WHERE m.state = 'LEFT'""",
    "no move to another cell has been under way for more than an hour": """
        SELECT business_id FROM moved_businesses WHERE state <> 'LEFT' AND at < now() - interval '1 hour'
        UNION SELECT reference FROM moved_payments WHERE rows IS NOT NULL AND at < now() - interval '1 hour'""",
    "of a provider's event nothing is kept 30 days after it was handled": """
        SELECT id FROM inbox WHERE handled_at < now() - interval '31 days' AND handled_at IS NOT NULL AND body <> ''""",
    "an archived payment is final, and its whole history is in a part that was read back": """
        SELECT x.reference FROM archived_payments x LEFT JOIN payments p USING (reference)
        LEFT JOIN archive_parts a ON a.number = x.part
        WHERE a.manifest IS NULL OR p.settled_at IS NULL
            OR EXISTS (SELECT FROM transitions t WHERE t.reference = x.reference)
            OR EXISTS (SELECT FROM attempts t WHERE t.reference = x.reference)""",
    "a payment is settled when its final transition says": """
        SELECT p.reference FROM payments p JOIN transitions t USING (reference)
        WHERE t.to_status = ANY (:final) AND p.settled_at IS DISTINCT FROM t.at""",
}

REFUSED_EVENTS = """
    SELECT received_at, fault, path, size, encode(digest, 'hex'), headers::text FROM refused_events
    WHERE received_at > now() - interval '1 hour' ORDER BY received_at DESC LIMIT :most"""

# From the first day with a LIVE hand-off to yesterday; a run that began within a day has not seen all of it.
UNRECONCILED = """
    WITH begun AS (
        SELECT a.gateway, (min(a.handed_off_at) AT TIME ZONE 'UTC')::date AS day FROM attempts a
        JOIN gateways g ON g.slug = a.gateway AND g.status <> 'DELETED' AND g.credentials IS NOT NULL
        WHERE a.environment = 'LIVE' AND a.handed_off_at IS NOT NULL AND a.gateway = ANY (:with_lists) GROUP BY 1)
    SELECT b.gateway, array_agg(d::date::text ORDER BY d) FROM begun b
    CROSS JOIN LATERAL generate_series(
        b.day, ((now() - interval '4 hours') AT TIME ZONE 'UTC')::date - 1, interval '1 day') d
    WHERE NOT EXISTS (
        SELECT FROM reconciliation_runs r WHERE r.gateway = b.gateway AND r.environment = 'LIVE'
            AND r.ended_at IS NOT NULL AND d::date BETWEEN r.first_day AND r.last_day
            AND (r.started_at AT TIME ZONE 'UTC')::date > d::date)
    GROUP BY b.gateway ORDER BY b.gateway"""

# Nobody else is notified of these. A later run replaces an earlier one of the same days, but a list never replaces a
# file, as it may have only refunds.
FINDINGS_ALONE = """
    SELECT r.gateway, f.bucket, count(*),
        (array_agg(coalesce(f.reference, f.line_id) || ' (' || r.id || ')' ORDER BY r.id, f.number))[1 : :most]
    FROM reconciliation_runs r JOIN reconciliation_findings f ON f.run_id = r.id
    WHERE r.environment = 'LIVE' AND r.ended_at > now() - interval '30 days' AND f.bucket = ANY (:buckets)
    AND NOT EXISTS (
        SELECT FROM reconciliation_runs l WHERE l.gateway = r.gateway AND l.environment = r.environment
            AND l.ended_at > r.ended_at AND l.first_day <= r.first_day AND l.last_day >= r.last_day
            AND (l.source <> 'list' OR r.source = 'list'))
    GROUP BY 1, 2 ORDER BY 1, 2"""


@dataclass(frozen=True)
class Finding:
    rule: str
    breaches: list[str]
    remedy: str

    @property
    def is_kept(self) -> bool:
        return not self.breaches


@dataclass(frozen=True)
class Findings:
    rules: list[Finding]
    anomalies: list[str]  # the newest ones
    anomaly_count: int
    refused_events: list[str]  # the newest SHOWN
    partitions: str  # how far ahead they exist, in words
    clock: str | None  # the warning when this machine's differs from the database's
    reconciliation: list[str]  # by gateway: days without one, and findings without an anomaly


def examine(database_url: str, with_lists: Sequence[str] = (), providers: Sequence[str] | None = None) -> Findings:
    """Checks every rule on one snapshot of the database; `with_lists` are the gateways whose provider has lists,
    `providers` the slugs of this deployment's. Raises Unavailable."""
    with translate_errors(), sync_engine(database_url) as engine, engine.connect() as plain:
        connection = plain.execution_options(isolation_level="REPEATABLE READ")
        connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'"))
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))  # a held table is told, not waited for
        connection.execute(text("SET TRANSACTION READ ONLY"))
        [(now,)] = connection.execute(text("SELECT now()"))
        values = WORDS | bounds(now) | {"providers": list(providers) if providers is not None else None}
        looked_for = {rule: Damage(query, EXPLAIN) for rule, query in RULES.items()} | DAMAGES
        rules = [
            Finding(rule, [str(row[0]) for row in connection.execute(text(f"{query} LIMIT {SHOWN}"), values)], remedy)
            for rule, (query, remedy) in looked_for.items()
        ]
        unclosed = "FROM anomalies WHERE status <> 'CLOSED'"
        listed = connection.execute(
            text(f"SELECT at, kind, reference, source, id, status {unclosed} ORDER BY id DESC LIMIT :most"),
            {"most": ANOMALIES_SHOWN},
        )
        refused = connection.execute(text(REFUSED_EVENTS), {"most": SHOWN})
        return Findings(
            rules,
            [
                f"{at:%Y-%m-%d %H:%M:%S}Z {kind} {ref or '-'} from {source} ({id}, {status})"
                for at, kind, ref, source, id, status in listed
            ],
            connection.execute(text(f"SELECT count(*) {unclosed}")).scalar_one(),
            [
                f"{at:%Y-%m-%d %H:%M:%S}Z {fault} at /webhooks{path}: {size} bytes, SHA-256 {digest}, {headers}"
                for at, fault, path, size, digest, headers in refused
            ],
            _partitions(connection),
            _clock(connection),
            _unreconciled_days(connection, with_lists) + _findings_alone(connection),
        )


def _partitions(connection: Connection) -> str:
    driver = connection.connection.driver_connection
    assert driver is not None
    end = max((week.end for week in weeks(driver)), default=None)
    today = connection.execute(text("SELECT (now() AT TIME ZONE 'UTC')::date")).scalar_one()
    if end is not None and end >= today + AHEAD_ENOUGH:
        return f"Events have partitions to the end of {end - timedelta(days=1)}."
    ahead = "No partition of events is ahead" if end is None or end <= today else f"Events have partitions until {end}"
    return (
        f"{ahead}: run `payagg migrate`, unless a worker has only just begun. Without one nothing is lost, but "
        "retention costs more."
    )


def _clock(connection: Connection) -> str | None:
    [(theirs,)] = connection.execute(text("SELECT clock_timestamp()"))
    ahead = (SystemClock().now() - theirs).total_seconds()
    return apart(ahead) if abs(ahead) > APART_SECONDS else None


def _unreconciled_days(connection: Connection, with_lists: Sequence[str]) -> list[str]:
    rows = connection.execute(text(UNRECONCILED), {"with_lists": list(with_lists)})
    return [
        f"{len(days)} days of {gateway} without a reconciliation (`payagg reconcile`): {', '.join(days[:SHOWN])}"
        + (" ..." if len(days) > SHOWN else "")
        for gateway, days in rows
    ]


def _findings_alone(connection: Connection) -> list[str]:
    buckets = [MatchBucket.HERE_ONLY.value, MatchBucket.UNREADABLE.value]
    rows = connection.execute(text(FINDINGS_ALONE), {"buckets": buckets, "most": SHOWN})
    return [
        f"{count} {bucket} in reconciliations of {gateway} in 30 days (docs/operating/reconciliation.md): "
        + ", ".join(listed)
        + (" ..." if count > SHOWN else "")
        for gateway, bucket, count, listed in rows
    ]
