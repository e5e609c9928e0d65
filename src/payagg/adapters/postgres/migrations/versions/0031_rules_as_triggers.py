"""The CHECKs of payments and attempts are rules of triggers, which a session compiles once, not for each statement.

The rules are those of migrations 0001 to 0018, in the same words. No row is read. The strongest lock comes first, so
that a writer that has read the table never waits for this migration while it waits for the writer.
"""

from alembic import op

from payagg.adapters.postgres.schema.triggers import (
    ATTEMPT_RULES,
    PAYMENT_RULES,
    Moves,
    attempt_trigger,
    payment_triggers,
)

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
    for table, rules in (("payments", PAYMENT_RULES), ("attempts", ATTEMPT_RULES)):
        dropped = ", ".join(f"DROP CONSTRAINT {name}" for name in rules)
        op.execute(f"ALTER TABLE {table} {dropped}")
    for statement in (*payment_triggers(PAYMENT), *attempt_trigger()):
        op.execute(statement)
