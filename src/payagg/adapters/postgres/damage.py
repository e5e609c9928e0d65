"""Damage by a broken machine, a wrong clock or a manual change, and what people left: a query for each, and what to do.
The money rules are in doctor.py."""

# ruff: noqa: S608 - our own words

from typing import NamedTuple

from payagg.adapters.postgres.repositories.payments import AMOUNT_DIGEST
from payagg.adapters.postgres.repositories.upkeep import IS_CHECK_AHEAD, IS_DELIVERY_AHEAD, IS_EVENT_AHEAD
from payagg.adapters.postgres.schema.tables import IS_UNSETTLED
from payagg.adapters.postgres.schema.triggers import TRIGGERS


class Damage(NamedTuple):
    query: str  # selects the references, or the names, of the damaged rows
    remedy: str


FROM_BACKUP = (
    "somebody, or a broken disk, changed rows past the service. Compare them with a backup (docs/operating/backup.md)"
    " and with `payagg explain REFERENCE`, and put back what is missing."
)
WAITING = (
    "see that a worker runs and what its log says (docs/operating/runbook.md). What is named here is done when it runs."
)
BY_HAND = (
    "ask the provider by the reference. If it was not paid, or the money went back, end it by hand"
    " (docs/operating/runbook.md#payagganomaliesopen)."
)
# By the broken rule.
DAMAGES = {
    "every trigger that guards a table is there and switched on": Damage(
        f"""SELECT wanted FROM unnest(ARRAY[{", ".join(f"'{name}'" for name in TRIGGERS)}]) wanted WHERE NOT EXISTS (
            SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = current_schema() AND t.tgname = wanted AND t.tgenabled IN ('O', 'A'))
        """,
        "switch it on (ALTER TABLE ... ENABLE TRIGGER ...); if it is gone, copy it from a new database that"
        " `payagg migrate` has made. Then look at what this report says of the rows.",
    ),
    "no instant lies further ahead than a rule can put it": Damage(
        f"""SELECT reference || ' payment' FROM payments WHERE created_at > :last AND currency = 'NGN'
        UNION ALL SELECT reference || ' expiry' FROM payments
            WHERE status = 'INITIATED' AND expires_at > :last + interval '30 days'
        UNION ALL SELECT reference || ' ask' FROM attempts WHERE {IS_UNSETTLED} AND {IS_CHECK_AHEAD}
        UNION ALL SELECT reference || ' paid' FROM attempts WHERE next_ask_at > :last AND confirmed_at > :last
        UNION ALL SELECT reference || ' delivery ' || id FROM deliveries WHERE {IS_DELIVERY_AHEAD}
        UNION ALL SELECT id FROM inbox WHERE {IS_EVENT_AHEAD}
        UNION ALL SELECT id FROM gateways WHERE drain_started_at > :last
        UNION ALL SELECT 'tokens of ' || value FROM token_revocations WHERE claim = 'sub' AND issued_before > :last""",
        "the database's clock was ahead, or somebody wrote a date. The worker brings asks, deliveries and provider"
        " events back within ten minutes. A paid charge is asked about refunds from its own date on: `payagg reconcile`"
        " finds them before. A payment can be paid until its own date; a gateway that drains can be"
        " enabled and disabled again. New tokens of a subject are refused until issued_before in token_revocations:"
        " set it to now, unless a token that is to be refused was issued by the wrong clock.",
    ),
    "nothing that the worker does has been due for more than a day": Damage(
        """SELECT reference || ' delivery ' || id FROM deliveries
            WHERE next_attempt_at < now() - interval '1 day' AND coalesce(lease_until, '-infinity') < now()
        UNION ALL SELECT id || ' provider event' FROM inbox
            WHERE next_attempt_at IS NOT NULL AND least(next_attempt_at, received_at) < now() - interval '1 day'
        UNION ALL SELECT reference || ' expiry' FROM payments
            WHERE status = 'INITIATED' AND expires_at < now() - interval '1 day'
        UNION ALL SELECT reference || ' ask' FROM attempts WHERE next_ask_at < now() - interval '1 day'
        UNION ALL SELECT id || ' drain' FROM gateways
            WHERE status = 'DRAINING' AND drain_ends_at < now() - interval '1 day'""",
        WAITING,
    ),
    "a PENDING payment's gateway can be asked: it has credentials, deleted or not": Damage(
        """SELECT p.reference FROM payments p JOIN attempts a USING (reference)
        LEFT JOIN gateways g ON g.id = a.gateway_id
        WHERE p.status = 'PENDING' AND a.state = 'HANDED_OFF' AND a.gateway <> 'sandbox' AND g.credentials IS NULL""",
        BY_HAND,
    ),
    "a PENDING payment will be asked about, or people know that nobody can answer": Damage(
        """SELECT p.reference FROM payments p WHERE p.status = 'PENDING' AND NOT EXISTS (
            SELECT FROM attempts a
            WHERE a.reference = p.reference AND a.state = 'HANDED_OFF' AND a.next_ask_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM anomalies a
            WHERE a.reference = p.reference AND a.kind IN ('NO_EVIDENCE', 'MISMATCH') AND a.status <> 'CLOSED')""",
        BY_HAND,
    ),
    "a charge that is to be asked about is of a provider of this deployment": Damage(
        """SELECT reference || ' at ' || gateway FROM attempts
        WHERE next_ask_at IS NOT NULL AND gateway <> ALL (coalesce(CAST(:providers AS text[]), ARRAY[gateway]))""",
        "give the provider the slug back that it had (PAYAGG_..._SLUG, docs/operating/settings.md), and restart servers"
        " and workers: nobody else can say whether these were paid, and events at the old address are refused.",
    ),
    # Only endpoints created before the event and unchanged since, so their subscription is known. The minute covers
    # those being created meanwhile.
    "an event has a delivery to each endpoint that wanted it": Damage(
        """SELECT e.reference || ' ' || e.type FROM events e JOIN webhook_endpoints w
            ON w.business_id = e.business_id AND w.environment = e.environment AND w.is_active
            AND w.updated_at < e.created_at - interval '1 minute'
            AND (w.events = ARRAY[]::text[] OR e.type = ANY (w.events))
        WHERE e.created_at > now() - interval '29 days' AND NOT EXISTS (
            SELECT FROM deliveries d WHERE d.reference = e.reference AND d.event_id = e.id AND d.endpoint_id = w.id)
        UNION ALL SELECT e.reference || ' ' || e.type || ' to its webhookUrl' FROM events e
        JOIN payments p USING (reference)
        WHERE p.webhook_url IS NOT NULL AND e.created_at > now() - interval '29 days' AND EXISTS (
            SELECT FROM webhook_endpoints w WHERE w.business_id = e.business_id AND w.environment = e.environment
            AND w.is_active AND w.updated_at < e.created_at - interval '1 minute')
        AND NOT EXISTS (
            SELECT FROM deliveries d
            WHERE d.reference = e.reference AND d.event_id = e.id AND d.endpoint_id IS NULL)""",
        "the merchant may not have been told. Tell them the references: `GET /events` still lists each event. "
        + FROM_BACKUP.capitalize(),
    ),
    "an event's body is as it was written": Damage(
        """SELECT e.reference || ' ' || e.type FROM events e
        CROSS JOIN LATERAL (SELECT convert_from(e.body, 'UTF8')::jsonb AS said) body
        WHERE e.body_digest <> substr(sha256(e.body), 1, 8) OR said ->> 'id' <> e.id OR said ->> 'type' <> e.type
            OR (said ->> 'sequence')::int <> e.sequence""",
        FROM_BACKUP,
    ),
    "a payment's amount is the one that it was initiated with": Damage(
        f"SELECT reference FROM payments WHERE amount_digest <> {AMOUNT_DIGEST}",
        "do not let it be paid or settled before the merchant and the provider have said the amount; " + FROM_BACKUP,
    ),
}
