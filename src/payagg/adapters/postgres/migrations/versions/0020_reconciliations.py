"""Reconciliations of providers' lists with our payments. Built while others write; safe to be repeated.

reconciliation_runs      one a gateway and range of days; `claim` says which of all workers does a day.
reconciliation_findings  what did not agree, with what came of reporting it.
attempts_handed_off      the payments that were handed to one provider in those days.
"""

from alembic import op

from payagg.adapters.postgres.migrations.concurrently import create_index

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE IF NOT EXISTS reconciliation_runs ("
        " id TEXT PRIMARY KEY, gateway TEXT NOT NULL,"
        " environment TEXT NOT NULL CONSTRAINT environment_known CHECK (environment IN ('SANDBOX', 'LIVE')),"
        " first_day DATE NOT NULL, last_day DATE NOT NULL, source TEXT NOT NULL, started_by TEXT NOT NULL,"
        " started_at TIMESTAMPTZ NOT NULL, claim TEXT UNIQUE, ended_at TIMESTAMPTZ, totals JSONB NOT NULL,"
        " CONSTRAINT days_in_order CHECK (first_day <= last_day))"
    )
    op.execute(
        "CREATE TABLE IF NOT EXISTS reconciliation_findings ("
        " run_id TEXT NOT NULL, number INTEGER NOT NULL, bucket TEXT NOT NULL, reference TEXT,"
        " provider_reference TEXT, line_kind TEXT, line_id TEXT, ours BIGINT, theirs BIGINT, effect TEXT,"
        " PRIMARY KEY (run_id, number))"
    )
    # Commits the tables, which a second run finds in place, and builds outside any transaction.
    create_index(
        "attempts_handed_off",
        "ON attempts (gateway, environment, handed_off_at, reference) WHERE handed_off_at IS NOT NULL",
    )
