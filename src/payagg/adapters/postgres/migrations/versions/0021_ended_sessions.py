"""Console sessions whose user has signed out, until they would have ended by themselves."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE ended_sessions ("
        " session BYTEA PRIMARY KEY CONSTRAINT session_is_a_digest CHECK (octet_length(session) = 32),"
        " ends_at TIMESTAMPTZ NOT NULL)"
    )
    op.execute("CREATE INDEX ended_sessions_ends_at ON ended_sessions (ends_at)")
