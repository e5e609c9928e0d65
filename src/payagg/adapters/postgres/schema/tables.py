"""Every table, as SQLAlchemy Core sees it. The schema itself is made by the migrations; a test compares the two.

Shape rules: whatever belongs to one payment is found by `reference` alone, and every unique rule of those tables
contains `reference` (idempotency keys are a table of their own), so a table can be partitioned by ranges of it. Events
are (see partitions.py); why the others are not is in docs/decisions.md.
Columns and dataclass fields share their names. Enumerations are stored as their words.
"""

from payagg.adapters.postgres.schema import accounts, payments, processes, reports, webhooks
from payagg.adapters.postgres.schema.columns import metadata

__all__ = ["accounts", "metadata", "payments", "processes", "reports", "webhooks"]
