"""Reconciliation with providers, and the archive."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from payagg.adapters.postgres.schema.columns import at, metadata, word

reconciliation_runs = Table(
    "reconciliation_runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("gateway", Text, nullable=False),
    *word("environment", "SANDBOX", "LIVE"),
    Column("first_day", Date, nullable=False),
    Column("last_day", Date, nullable=False),
    Column("source", Text, nullable=False),  # list, or file and its SHA-256
    Column("started_by", Text, nullable=False),
    at("started_at"),
    Column("claim", Text, unique=True),  # which of all workers does the day; NULL = somebody's own run
    at("ended_at", nullable=True),  # NULL = under way, or killed
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
    at("started_at"),
    at("removed_at", nullable=True),  # NULL = the history still lies here too
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
    Column("attempts", Text, nullable=False),  # gateway, state, provider's id: "provider_a HANDED_OFF 5000000001"
    Column("paid", Text),  # the reason of its transition to SUCCESS: the charge that was paid
)
