"""A reconciler's hold on an attempt, apart from when the ask was due: how late it is stays visible."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE attempts ADD COLUMN held_until TIMESTAMP WITH TIME ZONE")
