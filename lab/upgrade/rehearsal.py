"""A rehearsal: a column on each table that grows, and an index beside writes, as a release may bring them."""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = ""
down_revision = revises = ""
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("payments", "transitions", "attempts", "events", "deliveries"):
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS rehearsal TEXT NOT NULL DEFAULT 'none'")
    create_index("payments_of_rehearsal", "ON payments (rehearsal, reference)")
