"""Businesses, who may act for them, their gateways, and the records of who acted."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from payagg.adapters.postgres.schema.columns import at, metadata, word

businesses = Table(
    "businesses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    *word("status", "ACTIVE", "RESTRICTED", "SUSPENDED"),
    *word("kyc_status", "NOT_SUBMITTED", "PENDING", "UNDER_REVIEW", "APPROVED", "REJECTED"),
    at("created_at"),
    at("updated_at"),
)

members = Table(
    "members",
    metadata,
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    Column("subject", Text, nullable=False),
    *word("role", "OWNER", "ADMIN", "MEMBER"),
    PrimaryKeyConstraint("business_id", "subject"),
    Index("members_of_subject", "subject"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("business_id", Text, ForeignKey("businesses.id"), nullable=False),
    *word("environment", "SANDBOX", "LIVE"),
    Column("name", Text, nullable=False),
    Column("public_key", Text, nullable=False, unique=True),
    Column("secret_hash", LargeBinary, nullable=False, unique=True),
    Column("secret_last4", Text, nullable=False),
    *word("status", "ACTIVE", "REVOKED"),
    at("last_used_at", nullable=True),
    at("created_at"),
    at("revoked_at", nullable=True),
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
    *word("status", "ACTIVE", "DRAINING", "DISABLED", "DELETED"),
    at("drain_started_at", nullable=True),
    at("drain_ends_at", nullable=True),
    Column("credentials", LargeBinary),
    at("created_at"),
    at("updated_at"),
    Column("replaced_secrets", LargeBinary),  # sealed as the credentials are
    at("replaced_secrets_until", nullable=True),
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
    at("created_at"),
    at("updated_at"),
    PrimaryKeyConstraint("business_id", "gateway_id"),
    CheckConstraint("is_enabled OR NOT is_default", name="default_is_enabled"),
    Index("one_default_per_business", "business_id", unique=True, postgresql_where=text("is_default")),
    Index("business_gateways_of_gateway", "gateway_id"),
)

# Who changed what. Rows are added and read: a trigger refuses every change, and nothing here deletes one.
audit = Table(
    "audit",
    metadata,
    Column("id", Text, primary_key=True),
    at("at"),
    *word("realm", "admin", "merchant", "key", "cli", "clock"),
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
    *word("claim", "jti", "sub"),
    Column("value", Text, nullable=False),
    at("issued_before"),
    PrimaryKeyConstraint("claim", "value"),
)

# By the SHA-256 of the session's form token. A session that was ended has no row.
console_sessions = Table(
    "console_sessions",
    metadata,
    Column("session", LargeBinary, primary_key=True),
    *word("realm", "admin", "merchant"),
    Column("subject", Text, nullable=False),
    Column("address", Text),
    at("started_at"),
    at("seen_at"),
    at("ends_at"),
    CheckConstraint("octet_length(session) = 32", name="session_is_a_digest"),
    Index("console_sessions_of_subject", "subject", "started_at"),
    Index("console_sessions_ends_at", "ends_at"),
)

# Where servers of the release before note who has signed out; a later migration drops it.
ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("session", LargeBinary, primary_key=True),
    at("ends_at"),  # by itself; the row may go then
    CheckConstraint("octet_length(session) = 32", name="session_is_a_digest"),
    Index("ended_sessions_ends_at", "ends_at"),
)
