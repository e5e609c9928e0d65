"""Large metadata is kept once for the events of a payment.

events.metadata_at, metadata_digest   where in the body it stood, and which row holds it.
event_metadata                        the bytes.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE event_metadata (reference TEXT NOT NULL, digest BYTEA NOT NULL, encoded BYTEA NOT NULL,"
        " PRIMARY KEY (reference, digest))"
    )
    op.execute("ALTER TABLE events ADD COLUMN metadata_at INTEGER, ADD COLUMN metadata_digest BYTEA")
