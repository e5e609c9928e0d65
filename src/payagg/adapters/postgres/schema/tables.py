"""Every table, as SQLAlchemy Core sees it. The schema itself is made by the migrations; a test compares the two.

Shape rules: whatever belongs to one payment is found by `reference` alone, and every unique rule of those tables
contains `reference` (idempotency keys are a table of their own), so a table can be partitioned by ranges of it. Events
are (see partitions.py); why the others are not is in docs/decisions/retention.md.
Columns and dataclass fields share their names. Enumerations are stored as their words.
"""

from typing import Any

from sqlalchemy import (
    ARRAY,
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from payagg.domain.payment import PAYER_FIELDS

metadata = MetaData()
# What retention looks for, as its indexes say it: a planner compares the words.
HAS_PAYER = " OR ".join(f"{name} IS NOT NULL" for name in PAYER_FIELDS)
# Attempts that may have been paid.
IS_UNSETTLED = "next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL"
# Anomalies that a merchant may have to do something about.
MAY_NEED_ATTENTION = "kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE')"
# Closed anomalies that have an end: of test money, and told to no merchant.
MAY_END = "status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL"
HAS_BODY = "handled_at IS NOT NULL AND body <> ''"


def _at(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _word(name: str, *words: str) -> list[Any]:
    listed = ", ".join(f"'{word}'" for word in words)
    return [Column(name, Text, nullable=False), CheckConstraint(f"{name} IN ({listed})", name=f"{name}_known")]


businesses = Table(
    "businesses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    *_word("status", "ACTIVE", "RESTRICTED", "SUSPENDED"),
    *_word("kyc_status", "NOT_SUBMITTED", "PENDING", "UNDER_REVIEW", "APPROVED", "REJECTED"),
    _at("created_at"),
    _at("updated_at"),
)

members = Table(
    "members",
    metadata,
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    Column("subject", Text, nullable=False),
    *_word("role", "OWNER", "ADMIN", "MEMBER"),
    PrimaryKeyConstraint("business_id", "subject"),
    Index("members_of_subject", "subject"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    Column("name", Text, nullable=False),
    Column("public_key", Text, nullable=False, unique=True),
    Column("secret_hash", LargeBinary, nullable=False, unique=True),
    Column("secret_last4", Text, nullable=False),
    *_word("status", "ACTIVE", "REVOKED"),
    _at("last_used_at", nullable=True),
    _at("created_at"),
    _at("revoked_at", nullable=True),
    Index("api_keys_of_business", "business_id", "environment", "status"),
)

gateways = Table(
    "gateways",
    metadata,
    Column("id", Text, primary_key=True),
    Column("slug", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("logo_path", Text),
    Column("display_order", Integer, nullable=False),
    Column("is_built_in", Boolean, nullable=False),
    *_word("status", "ACTIVE", "DRAINING", "DISABLED", "DELETED"),
    _at("drain_started_at", nullable=True),
    _at("drain_ends_at", nullable=True),
    Column("credentials", LargeBinary),
    _at("created_at"),
    _at("updated_at"),
    Column("replaced_secrets", LargeBinary),  # sealed as the credentials are
    _at("replaced_secrets_until", nullable=True),
    CheckConstraint("(replaced_secrets IS NULL) = (replaced_secrets_until IS NULL)", name="replaced_secrets_end"),
    CheckConstraint("(status = 'DRAINING') = (drain_ends_at IS NOT NULL)", name="drain_has_an_end"),
    CheckConstraint("NOT is_built_in OR status = 'ACTIVE'", name="built_in_stays_active"),
    # A slug is free again once its gateway is deleted.
    Index("gateways_slug", "slug", unique=True, postgresql_where=text("status <> 'DELETED'")),
)

business_gateways = Table(
    "business_gateways",
    metadata,
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    Column("gateway_id", Text, ForeignKey("gateways.id"), nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("display_name", Text),
    Column("display_order", Integer),
    Column("is_default", Boolean, nullable=False),
    _at("created_at"),
    _at("updated_at"),
    PrimaryKeyConstraint("business_id", "gateway_id"),
    CheckConstraint("is_enabled OR NOT is_default", name="default_is_enabled"),
    Index("one_default_per_business", "business_id", unique=True, postgresql_where=text("is_default")),
    Index("business_gateways_of_gateway", "gateway_id"),
)

webhook_endpoints = Table(
    "webhook_endpoints",
    metadata,
    Column("id", Text, primary_key=True),
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    Column("url", Text, nullable=False),
    Column("description", Text),
    Column("events", ARRAY(Text, as_tuple=True), nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("secret_last4", Text, nullable=False),
    Column("previous_secret", LargeBinary),
    _at("previous_secret_expires_at", nullable=True),
    _at("failing_since", nullable=True),
    _at("last_test_at", nullable=True),
    Column("successful", BigInteger, nullable=False, server_default="0"),
    Column("failed", BigInteger, nullable=False, server_default="0"),
    Column("purged", BigInteger, nullable=False, server_default="0"),  # ended deliveries removed by retention
    Column("concurrency", SmallInteger, nullable=False, server_default="5"),  # tries at once: grows with good answers
    _at("created_at"),
    _at("updated_at"),
    _at("removed_at", nullable=True),
    Index("webhook_endpoints_of_business", "business_id", "environment"),
)

payments = Table(
    "payments",
    metadata,
    Column("reference", Text, primary_key=True),
    Column("business_id", Text, nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    Column("amount", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    *_word("status", "INITIATED", "PENDING", "SUCCESS", "FAILED", "REVERSED"),
    Column("gateway", Text),
    Column("customer_email", Text),
    Column("customer_name", Text),
    Column("customer_phone", Text),
    Column("callback_url", Text),
    Column("webhook_url", Text),
    Column("metadata", JSONB),
    Column("idempotency_key", Text),
    Column("fingerprint", LargeBinary),
    Column("failure_reason", Text),
    Column("sequence", SmallInteger, nullable=False),
    _at("created_at"),
    _at("updated_at"),
    _at("expires_at"),
    _at("settled_at", nullable=True),
    Column("is_test", Boolean, nullable=False, server_default="false"),
    Column("fee", BigInteger),
    Column("net_amount", BigInteger),
    Column("has_adjustments", Boolean, nullable=False, server_default="false"),
    CheckConstraint("(fee IS NULL) = (net_amount IS NULL) AND fee >= 0 AND net_amount >= 0", name="fee_has_its_net"),
    Column("api_key_id", Text),
    Column("amount_digest", LargeBinary),  # of the reference and the amount; NULL in rows of before migration 0024
    CheckConstraint(
        "NOT is_test OR (environment = 'SANDBOX' AND (gateway IS NULL OR gateway = 'sandbox'))",
        name="test_is_simulated",
    ),
    CheckConstraint("amount BETWEEN 100 AND 9007199254740991", name="amount_in_bounds"),
    CheckConstraint("currency = 'NGN'", name="currency_is_ngn"),
    CheckConstraint("NOT (environment = 'LIVE' AND gateway = 'sandbox')", name="live_never_simulated"),
    CheckConstraint(
        "(status IN ('SUCCESS', 'FAILED', 'REVERSED')) = (settled_at IS NOT NULL)", name="final_is_settled"
    ),
    CheckConstraint("failure_reason IS NULL OR status = 'FAILED'", name="only_failures_have_a_reason"),
    # No index has a column that a change of status writes, in its key or its predicate: the change is a new version on
    # the row's own page, and no index gets an entry (docs/decisions/postgres.md; a test compares).
    # The first two are partial by what is true of every row, and serve only the queries that say so.
    Index(
        "payments_by_business",
        *("business_id", "environment", "created_at", "reference"),
        postgresql_where=text("amount > 0"),
    ),
    Index("payments_by_creation", "environment", "created_at", "reference", postgresql_where=text("currency = 'NGN'")),
    Index(
        "payments_by_payer",
        *(text("lower(customer_email)"), "business_id", "environment", "created_at", "reference"),
        postgresql_where=text("customer_email IS NOT NULL"),
    ),
    Index("payments_by_expiry", "expires_at"),
    # Retention finds what it has to clear by the day, which all payments of it share.
    Index("payments_by_payer_day", text("substr(reference, 5, 8)"), postgresql_where=text(HAS_PAYER)),
    # Room for two more versions of a row on its page.
    postgresql_with={"fillfactor": "90"},
)

# One row: no payment that expires at `until` or before is INITIATED. The sweep of expiry reads from there on.
expiry_progress = Table("expiry_progress", metadata, _at("until"))

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("business_id", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("reference", Text, nullable=False),
    PrimaryKeyConstraint("business_id", "environment", "key"),
    # What has had its end: the day, which all keys of it share.
    Index("idempotency_keys_by_day", text("substr(reference, 5, 8)")),
)

transitions = Table(
    "transitions",
    metadata,
    Column("reference", Text, nullable=False),
    Column("sequence", SmallInteger, nullable=False),
    Column("from_status", Text, nullable=False),
    Column("to_status", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text),
    _at("at"),
    PrimaryKeyConstraint("reference", "sequence"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("reference", Text, nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("gateway_id", Text),
    Column("gateway", Text, nullable=False),
    Column("provider_reference", Text, nullable=False),
    Column("token", Text, nullable=False),
    *_word("state", "CLAIMED", "HANDED_OFF", "REFUSED", "UNKNOWN"),
    _at("lease_until"),
    Column("scenario", Text),
    Column("hand_off_kind", Text),
    Column("hand_off_url", Text),
    _at("created_at"),
    _at("handed_off_at", nullable=True),
    Column("asks", SmallInteger, nullable=False),
    _at("next_ask_at", nullable=True),
    _at("last_ask_at", nullable=True),
    Column("last_decline", Text),  # our word for it
    _at("held_until", nullable=True),  # a reconciler is asking, and others keep away
    Column("environment", Text, nullable=False, server_default="LIVE"),  # the payment's
    Column("account", Text),
    _at("confirmed_at", nullable=True),
    Column("provider_id", Text),
    Column("channel", Text),
    Column("fee", BigInteger),
    _at("paid_at", nullable=True),
    PrimaryKeyConstraint("reference", "number"),
    CheckConstraint("(state = 'HANDED_OFF') = (hand_off_url IS NOT NULL)", name="hand_off_is_whole"),
    # The rule that nobody pays twice: two processes may both have won by their own rows, the index admits one.
    Index("one_hand_off_per_payment", "reference", unique=True, postgresql_where=text("state = 'HANDED_OFF'")),
    Index("one_claim_per_payment", "reference", unique=True, postgresql_where=text("state = 'CLAIMED'")),
    Index("attempts_unsettled", "gateway_id", "reference", postgresql_where=text(IS_UNSETTLED)),
    Index(
        "attempts_due",
        "gateway",
        "environment",
        "next_ask_at",
        "reference",
        postgresql_where=text("next_ask_at IS NOT NULL"),
    ),
    # What a reconciliation with the provider's own list compares.
    Index(
        "attempts_handed_off",
        "gateway",
        "environment",
        "handed_off_at",
        "reference",
        postgresql_where=text("handed_off_at IS NOT NULL"),
    ),
)

provider_calls = Table(
    "provider_calls",
    metadata,
    Column("reference", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("gateway", Text, nullable=False),
    Column("operation", Text, nullable=False),  # start_charge or fetch_charge
    Column("result", Text, nullable=False),  # an Outcome, a HandOffKind or a FaultKind
    Column("word", Text),
    Column("duration_ms", Integer, nullable=False),
    Column("actor", Text, nullable=False),
    _at("at"),
    PrimaryKeyConstraint("reference", "id"),
)

# Some payments of one day whose history lies in the object store, see extensions/archive/writer.py.
archive_parts = Table(
    "archive_parts",
    metadata,
    Column("number", Integer, Identity(), primary_key=True),
    Column("day", Text, nullable=False),  # the beginning of its references: prefix and day
    Column("folder", Text, nullable=False, unique=True),
    Column("payments", Integer, nullable=False),
    Column("last_reference", Text),
    Column("manifest", LargeBinary),  # SHA-256; NULL = still being written
    _at("started_at"),
    _at("removed_at", nullable=True),  # NULL = the history still lies here too
    CheckConstraint("(manifest IS NULL) = (last_reference IS NULL)", name="written_whole"),
    CheckConstraint("removed_at IS NULL OR manifest IS NOT NULL", name="removed_after_written"),
    Index("archive_parts_of_day", "day", "number"),
)

# Payments whose transitions, attempts and provider calls are in the archive and no longer here; and of those what
# judges a provider's late report.
archived_payments = Table(
    "archived_payments",
    metadata,
    Column("reference", Text, primary_key=True),
    Column("part", Integer, nullable=False),
    Column("attempts", Text, nullable=False),  # gateway and state of each, by number: "provider_a HANDED_OFF"
    Column("paid", Text),  # the reason of its transition to SUCCESS: the charge that was paid
)

anomalies = Table(
    "anomalies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("reference", Text),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("details", JSONB, nullable=False),
    _at("at"),
    Column("event_sequence", SmallInteger),  # of the event that told the merchant, where one did
    Column("status", Text, nullable=False, server_default="OPEN"),
    Column("acknowledged_by", Text),
    _at("acknowledged_at", nullable=True),
    Column("closed_by", Text),
    _at("closed_at", nullable=True),
    Column("close_reason", Text),
    Column("business_id", Text),
    Column("environment", Text),
    Column("assignee", Text),
    Column("notes", JSONB, nullable=False, server_default=text("'[]'")),
    CheckConstraint("status IN ('OPEN', 'ACKNOWLEDGED', 'CLOSED')", name="anomaly_status_known"),
    CheckConstraint(
        "(status = 'CLOSED') = (closed_at IS NOT NULL AND closed_by IS NOT NULL AND close_reason IS NOT NULL)",
        name="closed_with_a_reason",
    ),
    Index("anomalies_of_payment", "reference"),
    Index(
        "anomalies_of_business", "business_id", "environment", "id", postgresql_where=text("business_id IS NOT NULL")
    ),
    Index(
        "anomalies_needing_attention",
        *("business_id", "environment", "id"),
        postgresql_where=text(f"business_id IS NOT NULL AND {MAY_NEED_ATTENTION}"),
    ),
    # What merchants were told, by time, for the sums of adjustments.
    Index("anomalies_told", "environment", "at", postgresql_where=text("event_sequence IS NOT NULL")),
    Index(
        "anomalies_told_business",
        *("business_id", "environment", "at"),
        postgresql_where=text("event_sequence IS NOT NULL"),
    ),
    # What is still to be worked off, for lists and the gauge.
    Index("anomalies_unclosed", "id", postgresql_where=text("status <> 'CLOSED'")),
    Index("anomalies_to_forget", "closed_at", postgresql_where=text(MAY_END)),
)

reconciliation_runs = Table(
    "reconciliation_runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("gateway", Text, nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    Column("first_day", Date, nullable=False),
    Column("last_day", Date, nullable=False),
    Column("source", Text, nullable=False),  # list, or file and its SHA-256
    Column("started_by", Text, nullable=False),
    _at("started_at"),
    Column("claim", Text, unique=True),  # which of all workers does the day; NULL = somebody's own run
    _at("ended_at", nullable=True),  # NULL = under way, or killed
    Column("totals", JSONB, nullable=False),  # by bucket: payments, ours, lines, theirs; kobo
    CheckConstraint("first_day <= last_day", name="days_in_order"),
)

reconciliation_findings = Table(
    "reconciliation_findings",
    metadata,
    Column("run_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("bucket", Text, nullable=False),
    Column("reference", Text),
    Column("provider_reference", Text),
    Column("line_kind", Text),
    Column("line_id", Text),
    Column("ours", BigInteger),  # kobo
    Column("theirs", BigInteger),
    Column("effect", Text),  # what the report of it did
    PrimaryKeyConstraint("run_id", "number"),
)

# Requests to end a payment by hand. Who asks does not confirm.
resolutions = Table(
    "resolutions",
    metadata,
    Column("id", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    _at("requested_at"),
    Column("confirmed_by", Text),
    _at("confirmed_at", nullable=True),
    PrimaryKeyConstraint("reference", "id"),
    CheckConstraint(
        "(confirmed_by IS NULL) = (confirmed_at IS NULL) AND confirmed_by <> requested_by", name="confirmed_by_another"
    ),
)

provider_health = Table(
    "provider_health",
    metadata,
    Column("gateway", Text, nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    Column("faults", Integer, nullable=False),
    _at("open_until", nullable=True),
    Column("open_for", Interval, nullable=False),
    PrimaryKeyConstraint("gateway", "environment"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", Text, primary_key=True),
    Column("provider", Text, nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    Column("digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    _at("received_at"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    _at("next_attempt_at", nullable=True),  # NULL = handled
    _at("handled_at", nullable=True),
    Column("result", Text),
    UniqueConstraint("provider", "environment", "digest", name="inbox_once"),
    Index("inbox_due", "next_attempt_at", postgresql_where=text("next_attempt_at IS NOT NULL")),
    Index("inbox_to_empty", "handled_at", "id", postgresql_where=text(HAS_BODY)),
)

# Lost on a crash and not replicated: what is kept here is for a day, and at most a few hundred rows.
refused_events = Table(
    "refused_events",
    metadata,
    Column("provider", Text, nullable=False),
    *_word("environment", "SANDBOX", "LIVE"),
    *_word("fault", "NO_CREDENTIALS", "NO_SIGNATURE", "OTHER_ENVIRONMENT", "WRONG_SECRET"),
    Column("slot", SmallInteger, nullable=False),
    Column("path", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("headers", JSONB, nullable=False),
    _at("received_at"),
    PrimaryKeyConstraint("provider", "environment", "fault", "slot"),
    CheckConstraint("slot BETWEEN 0 AND 49", name="slot_in_bounds"),
    prefixes=["UNLOGGED"],
)

events = Table(
    "events",
    metadata,
    Column("reference", Text, nullable=False),
    Column("sequence", SmallInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("business_id", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    _at("created_at"),
    # Where large metadata lies apart: at which byte of `body` it stood, a null being there now.
    Column("metadata_at", Integer),
    Column("metadata_digest", LargeBinary),
    Column("body_digest", LargeBinary),  # NULL in rows of before migration 0024
    PrimaryKeyConstraint("reference", "sequence"),
    Index("events_of_business", "business_id", "environment", "id"),
    postgresql_partition_by="RANGE (reference)",
)

event_metadata = Table(
    "event_metadata",
    metadata,
    Column("reference", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("encoded", LargeBinary, nullable=False),
    PrimaryKeyConstraint("reference", "digest"),
    postgresql_partition_by="RANGE (reference)",
)

# Those of their rows that no other partition takes: of before there were any, or of another prefix. The partitions of
# weeks are made as time goes on.
_other = DDL("CREATE TABLE %(table)s_other PARTITION OF %(table)s DEFAULT")  # type: ignore[no-untyped-call]
for _parent in (events, event_metadata):
    event.listen(_parent, "after_create", _other)

deliveries = Table(
    "deliveries",
    metadata,
    Column("reference", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("sequence", SmallInteger, nullable=False),
    Column("business_id", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("endpoint_id", Text),  # NULL = the payment's own webhookUrl
    Column("url", Text),  # only for the payment's own webhookUrl; an endpoint's address is read when sending
    Column("lane", Text, nullable=False),  # the domain's `partition`: one endpoint, or all webhookUrls of one business
    *_word("status", "PENDING", "DELIVERED", "FAILED"),
    Column("attempts", SmallInteger, nullable=False),
    _at("next_attempt_at", nullable=True),
    _at("lease_until", nullable=True),
    Column("token", Text),
    Column("last_status_code", SmallInteger),
    Column("last_error", Text),
    Column("duration_ms", Integer),
    _at("last_attempt_at", nullable=True),
    _at("created_at"),
    Column("lost_tries", SmallInteger, nullable=False, server_default="0"),  # in a row, their workers dead
    PrimaryKeyConstraint("reference", "id"),
    CheckConstraint("(status = 'PENDING') = (next_attempt_at IS NOT NULL)", name="pending_is_scheduled"),
    # Means the same as `status = 'PENDING'`, and keeps it out of the plans of those who say that.
    Index("deliveries_next", "next_attempt_at", "lane", postgresql_where=text("next_attempt_at IS NOT NULL")),
    Index("deliveries_due", "lane", "next_attempt_at", "id", postgresql_where=text("status = 'PENDING'")),
    Index("deliveries_of_endpoint", "endpoint_id", "id"),
    Index("deliveries_suspect", "next_attempt_at", postgresql_where=text("lost_tries > 1")),
    # A delivery row is updated at each try; room on the page keeps those updates off the indexes.
    postgresql_with={"fillfactor": "80"},
)

# Who changed what. Rows are added and read: a trigger refuses every change, and nothing here deletes one.
audit = Table(
    "audit",
    metadata,
    Column("id", Text, primary_key=True),
    _at("at"),
    *_word("realm", "admin", "merchant", "key", "cli", "clock"),
    Column("subject", Text, nullable=False),
    Column("address", Text),
    Column("request_id", Text),
    Column("action", Text, nullable=False),  # no CHECK: a server of the next release writes words of its own
    Column("object_kind", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("business_id", Text),
    Column("changes", JSONB, nullable=False),
    Index("audit_of_business", "business_id", "id"),
    Index("audit_of_subject", "subject", "id"),
    Index("audit_of_object", "object_id", "id"),
    Index("audit_of_action", "action", "id"),
)

# Tokens that are refused before their end; asked by both columns at each call with a bearer token.
token_revocations = Table(
    "token_revocations",
    metadata,
    *_word("claim", "jti", "sub"),
    Column("value", Text, nullable=False),
    _at("issued_before"),
    PrimaryKeyConstraint("claim", "value"),
)

# By the SHA-256 of the session's form token. A session that was ended has no row.
console_sessions = Table(
    "console_sessions",
    metadata,
    Column("session", LargeBinary, primary_key=True),
    *_word("realm", "admin", "merchant"),
    Column("subject", Text, nullable=False),
    Column("address", Text),
    _at("started_at"),
    _at("seen_at"),
    _at("ends_at"),
    CheckConstraint("octet_length(session) = 32", name="session_is_a_digest"),
    Index("console_sessions_of_subject", "subject", "started_at"),
    Index("console_sessions_ends_at", "ends_at"),
)

# Where servers of the release before note who has signed out; a later migration drops it.
ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("session", LargeBinary, primary_key=True),
    _at("ends_at"),  # by itself; the row may go then
    CheckConstraint("octet_length(session) = 32", name="session_is_a_digest"),
    Index("ended_sessions_ends_at", "ends_at"),
)

# Lost on a crash and not replicated, which suits what lives for a minute. One row a bucket, so that its lock is the
# limit's: `hits` has the number of hits by mark (domain/rate_limit.py).
rate_hits = Table(
    "rate_hits",
    metadata,
    Column("bucket", Text, primary_key=True),
    Column("hits", JSONB, nullable=False),
    _at("ends_at"),
    prefixes=["UNLOGGED"],
)

# Where servers of the release before count; a later migration drops it.
rate_counters = Table(
    "rate_counters",
    metadata,
    Column("bucket", Text, nullable=False),
    _at("window_start"),
    Column("count", Integer, nullable=False),
    PrimaryKeyConstraint("bucket", "window_start"),
    prefixes=["UNLOGGED"],
)

# What all processes counted, for the metrics; a counter that starts anew after a crash is what Prometheus expects.
tallies = Table(
    "tallies",
    metadata,
    Column("key", Text, primary_key=True),  # JSON: the name and its labels
    Column("value", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)

# What moves to another cell or has gone there. While `rows` is there the thing is on its way, and here is the one place
# that has it; from then on the row says where it went.
moved_businesses = Table(
    "moved_businesses",
    metadata,
    Column("business_id", Text, primary_key=True),
    Column("cell", Text, nullable=False),  # the other one: where it goes, or for ARRIVING where it comes from
    *_word("state", "LEAVING", "MOVING", "LEFT", "ARRIVING"),
    Column("rows", JSONB),  # its members
    _at("at"),
)
moved_keys = Table(
    "moved_keys",
    metadata,
    Column("secret_hash", LargeBinary, primary_key=True),
    Column("business_id", Text, nullable=False),
    Column("cell", Text, nullable=False),
    Column("rows", JSONB),
    _at("at"),
    Index("moved_keys_of_business", "business_id"),
)
moved_payments = Table(
    "moved_payments",
    metadata,
    Column("reference", Text, primary_key=True),
    Column("business_id", Text, nullable=False),
    Column("cell", Text, nullable=False),
    Column("rows", JSONB),  # the payment, and all that is found by its reference
    _at("at"),
    Index("moved_payments_under_way", "business_id", "reference", postgresql_where=text("rows IS NOT NULL")),
)
