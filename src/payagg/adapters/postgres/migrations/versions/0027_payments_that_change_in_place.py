"""Indexes of payments that a change of status leaves alone, beside those that it wrote to; built while others write.

While `status` stands in an index, in its key or its predicate, each change of it writes to every index of the table.

payments_by_business   a merchant's lists, exports and summaries: by time, and by status as a filter.
payments_by_creation   the same over all businesses.
payments_by_payer      a payer's payments at one business, and for an administrator at each business that has some.
payments_by_expiry     the sweep of expiry, which reads from where it has been: expiry_progress.
payments_by_payer_day  payments that still say who paid, by the day in their reference: some seven bytes for each.
anomalies_to_forget    closed anomalies of SANDBOX, which end.

The first two are partial by what is true of every row, as those of migration 0005 are, and for its reason. The indexes
of migrations 0001, 0005, 0008, 0020 and 0023 serve servers of the release before, until the next migration.
"""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # An update that finds room on the row's page writes to no index.
    op.execute("ALTER TABLE payments SET (fillfactor = 90)")
    create_index(
        "payments_by_business", "ON payments (business_id, environment, created_at, reference) WHERE amount > 0"
    )
    create_index("payments_by_creation", "ON payments (environment, created_at, reference) WHERE currency = 'NGN'")
    create_index(
        "payments_by_payer",
        "ON payments (lower(customer_email), business_id, environment, created_at, reference)"
        " WHERE customer_email IS NOT NULL",
    )
    create_index("payments_by_expiry", "ON payments (expires_at)")
    create_index(
        "payments_by_payer_day",
        "ON payments (substr(reference, 5, 8)) WHERE customer_email IS NOT NULL OR customer_name IS NOT NULL"
        " OR customer_phone IS NOT NULL OR metadata IS NOT NULL",
    )
    create_index(
        "anomalies_to_forget",
        "ON anomalies (closed_at) WHERE status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL",
    )
    op.execute("CREATE TABLE expiry_progress (until TIMESTAMP WITH TIME ZONE NOT NULL)")
    # Before the first that is INITIATED; where none is, before all that are initiated from now on.
    op.execute(
        "INSERT INTO expiry_progress SELECT coalesce("
        "(SELECT min(expires_at) - interval '1 microsecond' FROM payments WHERE status = 'INITIATED'),"
        " (SELECT least(expires_at, now()) FROM payments ORDER BY expires_at DESC LIMIT 1), '0001-01-01 00:00:00+00')"
    )
