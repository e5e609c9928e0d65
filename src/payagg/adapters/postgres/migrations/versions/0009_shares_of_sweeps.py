"""What sweeps share out: asks by provider and environment, tries by how well an endpoint answers.

attempts.environment            so that SANDBOX's asks take nothing from LIVE's; attempts of the release before count as
                                LIVE's, those still to be asked about are put right.
webhook_endpoints.concurrency   how many tries one endpoint gets at once.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE attempts ADD COLUMN environment TEXT NOT NULL DEFAULT 'LIVE'")
    op.execute("ALTER TABLE webhook_endpoints ADD COLUMN concurrency SMALLINT NOT NULL DEFAULT 5")
    op.execute(
        "UPDATE attempts a SET environment = 'SANDBOX' FROM payments p "
        "WHERE a.next_ask_at IS NOT NULL AND p.reference = a.reference AND p.environment = 'SANDBOX'"
    )
