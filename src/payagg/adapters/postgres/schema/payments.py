"""Payments, their charges, and what became of their money."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from payagg.adapters.postgres.schema.columns import at, metadata, word
from payagg.domain.payment import PAYER_FIELDS

# What retention looks for, as its indexes say it: a planner compares the words.
HAS_PAYER = " OR ".join(f"{name} IS NOT NULL" for name in PAYER_FIELDS)

# Attempts that may have been paid.
IS_UNSETTLED = "next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL"

# Anomalies that a merchant may have to do something about.
MAY_NEED_ATTENTION = "kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE')"

# Closed anomalies that have an end: of test money, and told to no merchant.
MAY_END = "status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL"

payments = Table(
    "payments",
    metadata,
    Column("reference", Text, primary_key=True),
    Column("business_id", Text, nullable=False),
    *word("environment", "SANDBOX", "LIVE"),
    Column("amount", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    *word("status", "INITIATED", "PENDING", "SUCCESS", "FAILED", "REVERSED"),
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
    at("created_at"),
    at("updated_at"),
    at("expires_at"),
    at("settled_at", nullable=True),
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
    # the row's own page, and no index gets an entry (docs/decisions.md; a test compares).
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
expiry_progress = Table("expiry_progress", metadata, at("until"))

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
    at("at"),
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
    *word("state", "CLAIMED", "HANDED_OFF", "REFUSED", "UNKNOWN"),
    at("lease_until"),
    Column("scenario", Text),
    Column("hand_off_kind", Text),
    Column("hand_off_url", Text),
    at("created_at"),
    at("handed_off_at", nullable=True),
    Column("asks", SmallInteger, nullable=False),
    at("next_ask_at", nullable=True),
    at("last_ask_at", nullable=True),
    Column("last_decline", Text),  # our word for it
    at("held_until", nullable=True),  # a reconciler is asking, and others keep away
    Column("environment", Text, nullable=False, server_default="LIVE"),  # the payment's
    Column("account", Text),
    at("confirmed_at", nullable=True),
    Column("provider_id", Text),
    Column("channel", Text),
    Column("fee", BigInteger),
    at("paid_at", nullable=True),
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
    at("at"),
    PrimaryKeyConstraint("reference", "id"),
)

anomalies = Table(
    "anomalies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("reference", Text),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("details", JSONB, nullable=False),
    at("at"),
    Column("event_sequence", SmallInteger),  # of the event that told the merchant, where one did
    Column("status", Text, nullable=False, server_default="OPEN"),
    Column("acknowledged_by", Text),
    at("acknowledged_at", nullable=True),
    Column("closed_by", Text),
    at("closed_at", nullable=True),
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

# Requests to end a payment by hand. Who asks does not confirm.
resolutions = Table(
    "resolutions",
    metadata,
    Column("id", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    at("requested_at"),
    Column("confirmed_by", Text),
    at("confirmed_at", nullable=True),
    PrimaryKeyConstraint("reference", "id"),
    CheckConstraint(
        "(confirmed_by IS NULL) = (confirmed_at IS NULL) AND confirmed_by <> requested_by", name="confirmed_by_another"
    ),
)
