"""Which businesses a user manages, for signing in without a business's id."""

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index("members_of_subject", "ON members (subject)")
