"""The first schema, with the state machines as they were on that day."""

from pathlib import Path

from alembic import op

from payagg.adapters.postgres.schema.triggers import (
    REFUSE,
    Moves,
    final_trigger,
    fixed_trigger,
    initial_trigger,
    transition_trigger,
)

revision = "0001"
down_revision = None
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
GATEWAY = Moves(
    initial="DISABLED",
    pairs=(
        ("ACTIVE", "DRAINING"),
        ("DISABLED", "ACTIVE"),
        ("DISABLED", "DELETED"),
        ("DRAINING", "ACTIVE"),
        ("DRAINING", "DISABLED"),
    ),
    final=("DELETED",),
)
API_KEY = Moves(initial="ACTIVE", pairs=(("ACTIVE", "REVOKED"),), final=("REVOKED",))
KYC = Moves(
    initial="NOT_SUBMITTED",
    pairs=(
        ("APPROVED", "UNDER_REVIEW"),
        ("NOT_SUBMITTED", "PENDING"),
        ("PENDING", "UNDER_REVIEW"),
        ("REJECTED", "PENDING"),
        ("UNDER_REVIEW", "APPROVED"),
        ("UNDER_REVIEW", "REJECTED"),
    ),
    final=(),
)


def upgrade() -> None:
    statements = Path(__file__).with_suffix(".sql").read_text()
    for statement in filter(str.strip, statements.split(";\n")):
        op.execute(statement)
    op.execute(REFUSE)
    op.execute(transition_trigger(PAYMENT, "payments", "status"))
    op.execute(initial_trigger(PAYMENT, "payments", "status"))
    op.execute(final_trigger(PAYMENT, "payments", "status"))
    op.execute(
        fixed_trigger("payments", ("reference", "business_id", "environment", "amount", "currency", "created_at"))
    )
    op.execute(transition_trigger(GATEWAY, "gateways", "status"))
    # The built-in gateway exists from the start and is always ACTIVE.
    op.execute(initial_trigger(GATEWAY, "gateways", "status", unless="NEW.is_built_in"))
    op.execute(transition_trigger(API_KEY, "api_keys", "status"))
    op.execute(initial_trigger(API_KEY, "api_keys", "status"))
    # A business whose KYC was decided elsewhere may be brought in as decided, so only moves are guarded.
    op.execute(transition_trigger(KYC, "businesses", "kyc_status"))
