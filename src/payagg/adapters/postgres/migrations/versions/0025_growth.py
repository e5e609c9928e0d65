"""What growth costs: indexes that no statement of this release or the one before reads go, and the tables that grow are
vacuumed by numbers that fit them.

payments_of_email, attempts_to_ask and attempts_open_of_gateway served the release before payments_of_payer,
attempts_due and attempts_unsettled. By default a table is vacuumed when a fifth of it is dead: of a hundred
million rows that is twenty million, which every index carries along meanwhile.
"""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import drop_index

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

SUPERSEDED = ("payments_of_email", "attempts_to_ask", "attempts_open_of_gateway")
GROWING = (
    "payments",
    "attempts",
    "transitions",
    "provider_calls",
    "idempotency_keys",
    "deliveries",
    "inbox",
    "anomalies",
)
SETTINGS = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02"


def upgrade() -> None:
    for name in SUPERSEDED:
        drop_index(name)
    for table in GROWING:
        op.execute(f"ALTER TABLE {table} SET ({SETTINGS})")
