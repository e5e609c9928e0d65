"""Indexes; built while others write.

attempts_unsettled     attempts of a gateway that may still be paid; before, attempts_open_of_gateway served for that.
anomalies_of_business  what a merchant sees of its payments' money.
payments_of_payer      payments by address in any letter case; before, payments_of_email served for that.
"""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE payments VALIDATE CONSTRAINT fee_has_its_net")
    create_index(
        "attempts_unsettled",
        "ON attempts (gateway_id, reference)"
        " WHERE next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL",
    )
    create_index("anomalies_of_business", "ON anomalies (business_id, environment, id) WHERE business_id IS NOT NULL")
    create_index(
        "payments_of_payer",
        "ON payments (lower(customer_email), business_id, environment, status, created_at, reference)"
        " WHERE customer_email IS NOT NULL",
    )
