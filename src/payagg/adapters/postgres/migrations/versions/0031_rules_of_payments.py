"""The CHECKs of payments are rules of a trigger, which a session compiles once and not for each statement.

The rules are those of migrations 0001 to 0018, in the same words. No row is read. The strongest lock comes first, so
that a writer that has read the table never waits for this migration while it waits for the writer.
"""

from alembic import op

from payagg.adapters.postgres.schema.triggers import PAYMENT_RULES, Moves, payment_triggers

revision = "0031"
down_revision = "0030"
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


def upgrade() -> None:
    dropped = ", ".join(f"DROP CONSTRAINT {name}" for name in PAYMENT_RULES)
    op.execute(f"ALTER TABLE payments {dropped}")
    for statement in payment_triggers(PAYMENT):
        op.execute(statement)
