"""Indexes of payments that hold the status go, after which a change of status writes to no index; what only grows is
vacuumed as it grows.

payments_to_expire, payments_of_business, payments_by_time, payments_of_payer and payments_with_payer served the release
before those of migration 0027.

By default rows that are only added wait for a fifth of the table, and until then lists read each of their rows to see
whether it is there, and the freeze of old ones comes all at once.
"""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import drop_index

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

SUPERSEDED = (
    "payments_to_expire",
    "payments_of_business",
    "payments_by_time",
    "payments_of_payer",
    "payments_with_payer",
)
GROWING = (
    *("payments", "attempts", "transitions", "provider_calls", "idempotency_keys", "deliveries", "inbox", "anomalies"),
    *("audit", "archived_payments"),
)
SETTINGS = ", ".join(f"autovacuum_{what}_scale_factor = 0.02" for what in ("vacuum", "vacuum_insert", "analyze"))


def upgrade() -> None:
    for name in SUPERSEDED:
        drop_index(name)
    for table in GROWING:
        op.execute(f"ALTER TABLE {table} SET ({SETTINGS})")
