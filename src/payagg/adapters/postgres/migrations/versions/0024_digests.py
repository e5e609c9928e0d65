"""Digests of what no constraint can hold: `payagg doctor` sees by them that a value was changed behind our back.

payments.amount_digest   of the reference and the amount: of a payment without events nothing else says the amount.
events.body_digest       of the body as it is stored.

Each is the first eight bytes of a SHA-256, which a defect meets once in 10^19; NULL in rows of before.
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE payments ADD COLUMN amount_digest BYTEA")
    op.execute("ALTER TABLE events ADD COLUMN body_digest BYTEA")
