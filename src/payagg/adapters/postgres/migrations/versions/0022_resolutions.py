"""Requests to end by hand a payment that no provider will end, and their confirmation by another administrator."""

from alembic import op

from payagg.adapters.postgres.schema.triggers import fixed_trigger

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

FIXED = ("id", "reference", "reason", "evidence", "requested_by", "requested_at")


def upgrade() -> None:
    op.execute("""
        CREATE TABLE resolutions (
            id TEXT NOT NULL,
            reference TEXT NOT NULL,
            reason TEXT NOT NULL,
            evidence TEXT NOT NULL,
            requested_by TEXT NOT NULL,
            requested_at TIMESTAMPTZ NOT NULL,
            confirmed_by TEXT,
            confirmed_at TIMESTAMPTZ,
            PRIMARY KEY (reference, id),
            CONSTRAINT confirmed_by_another
                CHECK ((confirmed_by IS NULL) = (confirmed_at IS NULL) AND confirmed_by <> requested_by)
        )
    """)
    op.execute(fixed_trigger("resolutions", FIXED))
    op.execute("""
        CREATE TRIGGER resolutions_final BEFORE UPDATE ON resolutions FOR EACH ROW
        WHEN (OLD.confirmed_at IS NOT NULL AND OLD.* IS DISTINCT FROM NEW.*)
        EXECUTE FUNCTION refuse_change('a confirmed resolution cannot change')
    """)
