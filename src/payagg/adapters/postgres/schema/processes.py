"""What processes share, and what moves between cells."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from payagg.adapters.postgres.schema.columns import at, metadata, word

# Lost on a crash and not replicated, which suits what lives for a minute. One row a bucket, so that its lock is the
# limit's: `hits` has the number of hits by mark (domain/rate_limit.py).
rate_hits = Table(
    "rate_hits",
    metadata,
    Column("bucket", Text, primary_key=True),
    Column("hits", JSONB, nullable=False),
    at("ends_at"),
    prefixes=["UNLOGGED"],
)

# Where servers of the release before count; a later migration drops it.
rate_counters = Table(
    "rate_counters",
    metadata,
    Column("bucket", Text, nullable=False),
    at("window_start"),
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
    *word("state", "LEAVING", "MOVING", "LEFT", "ARRIVING"),
    Column("rows", JSONB),  # its members
    at("at"),
)

moved_keys = Table(
    "moved_keys",
    metadata,
    Column("secret_hash", LargeBinary, primary_key=True),
    Column("business_id", Text, nullable=False),
    Column("cell", Text, nullable=False),
    Column("rows", JSONB),
    at("at"),
    Index("moved_keys_of_business", "business_id"),
)

moved_payments = Table(
    "moved_payments",
    metadata,
    Column("reference", Text, primary_key=True),
    Column("business_id", Text, nullable=False),
    Column("cell", Text, nullable=False),
    Column("rows", JSONB),  # the payment, and all that is found by its reference
    at("at"),
    Index("moved_payments_under_way", "business_id", "reference", postgresql_where=text("rows IS NOT NULL")),
)
