"""The CHECKs of payments and attempts are rules of triggers, which a session compiles once, not for each statement.

The rules are those of migrations 0001 to 0018, in the same words. No row is read. The strongest lock comes first, so
that a writer that has read the table never waits for this migration while it waits for the writer.
"""

from alembic import op

from payagg.adapters.postgres.schema.triggers import Moves, attempt_trigger, payment_triggers

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

# What a CHECK says of other tables' rows, by its name. tests/unit/domain/test_bounds.py compares them with the domain.
ATTEMPT_RULES = {
    "state_known": "NEW.state IN ('CLAIMED', 'HANDED_OFF', 'REFUSED', 'UNKNOWN')",
    "hand_off_is_whole": "(NEW.state = 'HANDED_OFF') = (NEW.hand_off_url IS NOT NULL)",
}
PAYMENT_RULES = {
    "status_known": "NEW.status IN ('INITIATED', 'PENDING', 'SUCCESS', 'FAILED', 'REVERSED')",
    "environment_known": "NEW.environment IN ('SANDBOX', 'LIVE')",
    "fee_has_its_net": "(NEW.fee IS NULL) = (NEW.net_amount IS NULL) AND NEW.fee >= 0 AND NEW.net_amount >= 0",
    "final_is_settled": "(NEW.status IN ('SUCCESS', 'FAILED', 'REVERSED')) = (NEW.settled_at IS NOT NULL)",
    "only_failures_have_a_reason": "NEW.failure_reason IS NULL OR NEW.status = 'FAILED'",
    "test_is_simulated": (
        "NOT NEW.is_test OR (NEW.environment = 'SANDBOX' AND (NEW.gateway IS NULL OR NEW.gateway = 'sandbox'))"
    ),
    "live_never_simulated": "NOT (NEW.environment = 'LIVE' AND NEW.gateway = 'sandbox')",
    "amount_in_bounds": "NEW.amount BETWEEN 100 AND 9007199254740991",
    "currency_is_ngn": "NEW.currency = 'NGN'",
}
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
    for statement in (*payment_triggers(PAYMENT, PAYMENT_RULES), *attempt_trigger(ATTEMPT_RULES)):
        op.execute(statement)
