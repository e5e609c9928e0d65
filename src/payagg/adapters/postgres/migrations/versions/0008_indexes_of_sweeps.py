"""What the sweeps of retention and of gateways' secrets go by; built while others write.

payments_with_payer       retention finds the payments that still say who paid; an entry goes when it is cleared.
inbox_to_empty            and the events that still have a body.
attempts_open_of_gateway  whether a gateway's secrets may be wiped.
"""

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index(
        "payments_with_payer",
        "ON payments (settled_at, reference) WHERE settled_at IS NOT NULL AND"
        " (customer_email IS NOT NULL OR customer_name IS NOT NULL OR customer_phone IS NOT NULL"
        " OR metadata IS NOT NULL)",
    )
    create_index("inbox_to_empty", "ON inbox (handled_at, id) WHERE handled_at IS NOT NULL AND body <> ''")
    create_index(
        "attempts_open_of_gateway",
        "ON attempts (gateway_id, reference) WHERE next_ask_at IS NOT NULL AND gateway_id IS NOT NULL",
    )
