"""The audit trail: who changed what, in rows that the database itself keeps from being changed."""

from alembic import op

from payagg.adapters.postgres.schema.triggers import append_only_triggers

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    realm TEXT NOT NULL CONSTRAINT realm_known CHECK (realm IN ('admin', 'merchant', 'key', 'cli', 'clock')),
    subject TEXT NOT NULL,
    address TEXT,
    request_id TEXT,
    action TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_id TEXT NOT NULL,
    business_id TEXT,
    changes JSONB NOT NULL
)
"""


def upgrade() -> None:
    op.execute(TABLE)
    for name, column in (
        ("audit_of_business", "business_id"),
        ("audit_of_subject", "subject"),
        ("audit_of_object", "object_id"),
        ("audit_of_action", "action"),
    ):
        op.execute(f"CREATE INDEX {name} ON audit ({column}, id)")
    for trigger in append_only_triggers("audit"):
        op.execute(trigger)
