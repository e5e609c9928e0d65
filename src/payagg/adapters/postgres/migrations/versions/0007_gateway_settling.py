"""Secrets that outlive their gateway or their replacement, events refused for their signature, test payments."""

from alembic import op

from payagg.adapters.postgres.schema.triggers import fixed_trigger

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

REFUSED_EVENTS = """
CREATE UNLOGGED TABLE refused_events (
    provider TEXT NOT NULL,
    environment TEXT NOT NULL,
    fault TEXT NOT NULL,
    slot SMALLINT NOT NULL,
    path TEXT NOT NULL,
    digest BYTEA NOT NULL,
    size INTEGER NOT NULL,
    headers JSONB NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (provider, environment, fault, slot),
    CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),
    CONSTRAINT fault_known CHECK (fault IN ('NO_CREDENTIALS', 'NO_SIGNATURE', 'OTHER_ENVIRONMENT', 'WRONG_SECRET')),
    CONSTRAINT slot_in_bounds CHECK (slot BETWEEN 0 AND 49)
)
"""


def upgrade() -> None:
    op.execute(
        "ALTER TABLE gateways ADD COLUMN replaced_secrets BYTEA, ADD COLUMN replaced_secrets_until TIMESTAMPTZ, "
        "ADD CONSTRAINT replaced_secrets_end CHECK ((replaced_secrets IS NULL) = (replaced_secrets_until IS NULL))"
    )
    op.execute(
        "ALTER TABLE payments ADD COLUMN is_test BOOLEAN DEFAULT false NOT NULL, ADD CONSTRAINT test_is_simulated "
        "CHECK (NOT is_test OR (environment = 'SANDBOX' AND (gateway IS NULL OR gateway = 'sandbox')))"
    )
    op.execute("DROP TRIGGER payments_fixed ON payments")
    fixed = ("reference", "business_id", "environment", "amount", "currency", "created_at", "is_test")
    op.execute(fixed_trigger("payments", fixed))
    op.execute(REFUSED_EVENTS)
