"""What becomes of a payment's money after its first hour.

attempts.account            fingerprint of the provider account that the charge was started with.
attempts.confirmed_at ...   when its success was accepted as true, and what the provider says of the charge.
payments.api_key_id         the key that initiated it.
payments.fee, net_amount    kobo; with has_adjustments all that a final payment may still learn.
anomalies.event_sequence    may be set later, once: a fact that was known before the payment was paid.
anomalies.business_id ...   whose payment it is about, who works on it, and what people wrote.
"""

from alembic import op

from payagg.adapters.postgres.schema.triggers import Moves, clearing_trigger, fixed_trigger

revision = "0018"
down_revision = "0017"
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
SETTABLE = ("fee", "net_amount", "has_adjustments")
ANOMALY = Moves(
    initial="OPEN",
    pairs=(("ACKNOWLEDGED", "CLOSED"), ("OPEN", "ACKNOWLEDGED"), ("OPEN", "CLOSED")),
    final=("CLOSED",),
)
FIXED_OF_PAYMENT = (
    *("reference", "business_id", "environment", "amount", "currency", "created_at", "is_test", "api_key_id"),
)
FIXED = ("id", "reference", "kind", "source", "details", "at", "business_id", "environment")


def upgrade() -> None:
    op.execute("""
        ALTER TABLE attempts
            ADD COLUMN account TEXT,
            ADD COLUMN confirmed_at TIMESTAMPTZ,
            ADD COLUMN provider_id TEXT,
            ADD COLUMN channel TEXT,
            ADD COLUMN fee BIGINT,
            ADD COLUMN paid_at TIMESTAMPTZ
    """)
    op.execute("""
        ALTER TABLE payments
            ADD COLUMN fee BIGINT,
            ADD COLUMN net_amount BIGINT,
            ADD COLUMN has_adjustments BOOLEAN NOT NULL DEFAULT false,
            ADD COLUMN api_key_id TEXT,
            ADD CONSTRAINT fee_has_its_net
                CHECK ((fee IS NULL) = (net_amount IS NULL) AND fee >= 0 AND net_amount >= 0) NOT VALID
    """)
    op.execute("""
        ALTER TABLE anomalies
            ADD COLUMN business_id TEXT,
            ADD COLUMN environment TEXT,
            ADD COLUMN assignee TEXT,
            ADD COLUMN notes JSONB NOT NULL DEFAULT '[]'
    """)
    op.execute("DROP TRIGGER payments_final ON payments")
    op.execute(clearing_trigger(PAYMENT, "payments", "status", CLEARABLE, SETTABLE))
    op.execute("DROP TRIGGER payments_fixed ON payments")
    op.execute(fixed_trigger("payments", FIXED_OF_PAYMENT))
    op.execute("DROP TRIGGER anomalies_fixed ON anomalies")
    op.execute(fixed_trigger("anomalies", FIXED))
    op.execute("DROP TRIGGER anomalies_final ON anomalies")
    op.execute(clearing_trigger(ANOMALY, "anomalies", "status", settable=("event_sequence",)))
