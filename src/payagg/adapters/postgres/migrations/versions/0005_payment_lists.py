"""Lists and summaries of payments, by index whatever they are filtered by.

Order and cursor are (created_at, reference). Each index begins with what a list holds fixed, so a page is the end of a
range: the status stands among it because a list of one rare status must not read through the others, and a list of all
statuses is merged from five ranges. A change of status gives a payment new entries in every index of its table, this
one or another, because one that exists is partial by status; so fewer indexes count, and not which columns they hold.

payments_of_business  a merchant's lists, exports and summaries. The amount and the end of the window are along for
                      the summary, which then reads no row, and for what has expired before the sweep came by.
payments_by_time      the same for an administrator, across businesses: merging a range for each business would cost
                      by their number.
payments_of_email     a payer's payments at one business, and for an administrator at each business that has some. The
                      address comes first to serve both, the business second so that an address that another merchant
                      gives for everybody costs nothing here. Payments without an address have no entry.

The first two are partial by what is true of every row. Only the queries that each is for say so: with statistics of a
time when no payment was open, the server takes an index that shares a few columns for as good as the right one, and
reads all open payments of everybody to find those of one merchant.

References and idempotency keys are found by the keys that exist.
"""

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_index(
        "payments_of_business",
        "ON payments (business_id, environment, status, created_at, reference) INCLUDE (amount, expires_at) "
        "WHERE amount > 0",
    )
    create_index(
        "payments_by_time",
        "ON payments (environment, status, created_at, reference) INCLUDE (amount, expires_at) WHERE currency = 'NGN'",
    )
    create_index(
        "payments_of_email",
        "ON payments (customer_email, business_id, environment, status, created_at, reference) "
        "WHERE customer_email IS NOT NULL",
    )
