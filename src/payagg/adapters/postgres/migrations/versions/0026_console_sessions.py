"""Console sessions as rows, so that they are listed and ended, and end when nobody uses them.

`ended_sessions` serves the release before."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE console_sessions ("
        " session BYTEA PRIMARY KEY CONSTRAINT session_is_a_digest CHECK (octet_length(session) = 32),"
        " realm TEXT NOT NULL CONSTRAINT realm_known CHECK (realm IN ('admin', 'merchant')),"
        " subject TEXT NOT NULL,"
        " address TEXT,"
        " started_at TIMESTAMPTZ NOT NULL,"
        " seen_at TIMESTAMPTZ NOT NULL,"
        " ends_at TIMESTAMPTZ NOT NULL)"
    )
    op.execute("CREATE INDEX console_sessions_of_subject ON console_sessions (subject, started_at)")
    op.execute("CREATE INDEX console_sessions_ends_at ON console_sessions (ends_at)")
