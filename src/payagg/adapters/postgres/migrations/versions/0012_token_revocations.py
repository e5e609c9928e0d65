"""Bearer tokens that are refused before their end."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE token_revocations ("
        " claim TEXT NOT NULL CONSTRAINT claim_known CHECK (claim IN ('jti', 'sub')),"
        " value TEXT NOT NULL, issued_before TIMESTAMPTZ NOT NULL, PRIMARY KEY (claim, value))"
    )
