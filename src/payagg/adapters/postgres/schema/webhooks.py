"""Events: providers' to us, and ours to merchants."""

from sqlalchemy import (
    ARRAY,
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from payagg.adapters.postgres.schema.columns import at, metadata, word

HAS_BODY = "handled_at IS NOT NULL AND body <> ''"

provider_health = Table(
    "provider_health",
    metadata,
    Column("gateway", Text, nullable=False),
    *word("environment", "SANDBOX", "LIVE"),
    Column("faults", Integer, nullable=False),
    at("open_until", nullable=True),
    Column("open_for", Interval, nullable=False),
    PrimaryKeyConstraint("gateway", "environment"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", Text, primary_key=True),
    Column("provider", Text, nullable=False),
    *word("environment", "SANDBOX", "LIVE"),
    Column("digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    at("received_at"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    at("next_attempt_at", nullable=True),  # NULL = handled
    at("handled_at", nullable=True),
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
    *word("environment", "SANDBOX", "LIVE"),
    *word("fault", "NO_CREDENTIALS", "NO_SIGNATURE", "OTHER_ENVIRONMENT", "WRONG_SECRET"),
    Column("slot", SmallInteger, nullable=False),
    Column("path", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("headers", JSONB, nullable=False),
    at("received_at"),
    PrimaryKeyConstraint("provider", "environment", "fault", "slot"),
    CheckConstraint("slot BETWEEN 0 AND 49", name="slot_in_bounds"),
    prefixes=["UNLOGGED"],
)

webhook_endpoints = Table(
    "webhook_endpoints",
    metadata,
    Column("id", Text, primary_key=True),
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    *word("environment", "SANDBOX", "LIVE"),
    Column("url", Text, nullable=False),
    Column("description", Text),
    Column("events", ARRAY(Text, as_tuple=True), nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("secret_last4", Text, nullable=False),
    Column("previous_secret", LargeBinary),
    at("previous_secret_expires_at", nullable=True),
    at("failing_since", nullable=True),
    at("last_test_at", nullable=True),
    Column("successful", BigInteger, nullable=False, server_default="0"),
    Column("failed", BigInteger, nullable=False, server_default="0"),
    Column("purged", BigInteger, nullable=False, server_default="0"),  # ended deliveries removed by retention
    Column("concurrency", SmallInteger, nullable=False, server_default="5"),  # tries at once: grows with good answers
    at("created_at"),
    at("updated_at"),
    at("removed_at", nullable=True),
    Index("webhook_endpoints_of_business", "business_id", "environment"),
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
    at("created_at"),
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
    *word("status", "PENDING", "DELIVERED", "FAILED"),
    Column("attempts", SmallInteger, nullable=False),
    at("next_attempt_at", nullable=True),
    at("lease_until", nullable=True),
    Column("token", Text),
    Column("last_status_code", SmallInteger),
    Column("last_error", Text),
    Column("duration_ms", Integer),
    at("last_attempt_at", nullable=True),
    at("created_at"),
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
