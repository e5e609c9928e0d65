"""Indexes of what merchants see of the money after a payment's first hour; built while others write.

anomalies_needing_attention  what a merchant has to look at: beside many refunds it is rare.
payments_of_business, payments_by_time
                             with the fee and the net amount along, so that the summary still reads no row. Each is
                             built beside the one of migration 0005, which a server of the release before uses as well,
                             and takes its name.
"""

from payagg.adapters.postgres.migrations.concurrently import create_index, replace_index

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index(
        "anomalies_needing_attention",
        "ON anomalies (business_id, environment, id) WHERE business_id IS NOT NULL"
        " AND kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE')",
    )
    replace_index(
        "payments_of_business",
        "ON payments (business_id, environment, status, created_at, reference)"
        " INCLUDE (amount, expires_at, fee, net_amount) WHERE amount > 0",
    )
    replace_index(
        "payments_by_time",
        "ON payments (environment, status, created_at, reference)"
        " INCLUDE (amount, expires_at, fee, net_amount) WHERE currency = 'NGN'",
    )
