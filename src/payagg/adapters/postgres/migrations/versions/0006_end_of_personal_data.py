"""Personal data may end: payer fields of a final payment can be cleared and nothing else of it; rate limits that hold
over any minute keep the hits of a bucket in one row."""

from alembic import op

from payagg.adapters.postgres.schema.triggers import Moves, clearing_trigger

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

PAYMENT = Moves(
    initial="INITIATED",
    pairs=(
        ("INITIATED", "FAILED"),
        ("INITIATED", "PENDING"),
        ("INITIATED", "REVERSED"),
        ("INITIATED", "SUCCESS"),
        ("PENDING", "FAILED"),
        ("PENDING", "REVERSED"),
        ("PENDING", "SUCCESS"),
    ),
    final=("FAILED", "REVERSED", "SUCCESS"),
)
CLEARABLE = ("customer_email", "customer_name", "customer_phone", "metadata", "fingerprint")


def upgrade() -> None:
    op.execute("DROP TRIGGER payments_final ON payments")
    op.execute(clearing_trigger(PAYMENT, "payments", "status", CLEARABLE))
    # rate_counters stays for servers of the release before.
    op.execute(
        "CREATE UNLOGGED TABLE rate_hits (bucket TEXT NOT NULL, hits JSONB NOT NULL, ends_at TIMESTAMPTZ NOT NULL,"
        " PRIMARY KEY (bucket))"
    )
