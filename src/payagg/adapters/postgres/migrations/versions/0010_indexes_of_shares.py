"""What the shares of sweeps go by; built while others write.

attempts_due     asks of one provider and environment, oldest first; the release before still goes by attempts_to_ask.
deliveries_next  what is due over all partitions, oldest first: a claim costs what is due, not what waits. Said in other
                 words than deliveries_due, so that who asks for what is pending in one partition goes by that.
"""

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index(
        "attempts_due", "ON attempts (gateway, environment, next_ask_at, reference) WHERE next_ask_at IS NOT NULL"
    )
    create_index("deliveries_next", "ON deliveries (next_attempt_at, lane) WHERE next_attempt_at IS NOT NULL")
