"""Declines that are not the end, and the life of an anomaly. Only adds, so servers of the release before go on."""

from alembic import op

from payagg.adapters.postgres.schema.triggers import (
    Moves,
    final_trigger,
    fixed_trigger,
    initial_trigger,
    transition_trigger,
)

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ANOMALY = Moves(
    initial="OPEN",
    pairs=(("ACKNOWLEDGED", "CLOSED"), ("OPEN", "ACKNOWLEDGED"), ("OPEN", "CLOSED")),
    final=("CLOSED",),
)


def upgrade() -> None:
    op.execute("ALTER TABLE attempts ADD COLUMN last_decline TEXT")
    op.execute("""
        ALTER TABLE anomalies
            ADD COLUMN event_sequence SMALLINT,
            ADD COLUMN status TEXT NOT NULL DEFAULT 'OPEN',
            ADD COLUMN acknowledged_by TEXT,
            ADD COLUMN acknowledged_at TIMESTAMP WITH TIME ZONE,
            ADD COLUMN closed_by TEXT,
            ADD COLUMN closed_at TIMESTAMP WITH TIME ZONE,
            ADD COLUMN close_reason TEXT,
            ADD CONSTRAINT anomaly_status_known CHECK (status IN ('OPEN', 'ACKNOWLEDGED', 'CLOSED')),
            ADD CONSTRAINT closed_with_a_reason CHECK (
                (status = 'CLOSED') = (closed_at IS NOT NULL AND closed_by IS NOT NULL AND close_reason IS NOT NULL)
            )
    """)
    op.execute("CREATE INDEX anomalies_unclosed ON anomalies (id) WHERE status <> 'CLOSED'")
    op.execute(initial_trigger(ANOMALY, "anomalies", "status"))
    op.execute(transition_trigger(ANOMALY, "anomalies", "status"))
    op.execute(final_trigger(ANOMALY, "anomalies", "status"))
    op.execute(fixed_trigger("anomalies", ("id", "reference", "kind", "source", "details", "at", "event_sequence")))
