"""What keeps one delivery, and one business, from harming another's. Built while others write; safe to be repeated.

deliveries.lost_tries           tries in a row whose worker died before it recorded them.
deliveries_suspect              those that are sent alone; the release before sends one as any other.
webhook_endpoints.removed_at    hidden from its business, and deleted with the last of its deliveries.
"""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE deliveries ADD COLUMN IF NOT EXISTS lost_tries SMALLINT NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE webhook_endpoints ADD COLUMN IF NOT EXISTS removed_at TIMESTAMPTZ")
    # Commits the columns, which a second run finds in place, and builds outside any transaction.
    create_index("deliveries_suspect", "ON deliveries (next_attempt_at) WHERE lost_tries > 1")
