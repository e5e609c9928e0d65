"""Indexes of what merchants were told of the money after a payment's end, by the time of each fact; built while others
write.

anomalies_told           of all merchants.
anomalies_told_business  of one merchant.

Sums of adjustments bounded their days by ids, which after a clock that was ahead go on from the days ahead.
"""

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index("anomalies_told", "ON anomalies (environment, at) WHERE event_sequence IS NOT NULL")
    create_index(
        "anomalies_told_business", "ON anomalies (business_id, environment, at) WHERE event_sequence IS NOT NULL"
    )
