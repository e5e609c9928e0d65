"""Events and their metadata are partitioned by ranges of `reference`. No row is moved or looked at.

events, event_metadata              what was a table is now a partitioned one of that name.
events_other, event_metadata_other  the tables as they were: its default partitions, for what no other partition takes.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

KEYS = {"events": "reference, sequence", "event_metadata": "reference, digest"}


def upgrade() -> None:
    # As Postgres would call the indexes of a partition.
    op.execute("ALTER INDEX events_of_business RENAME TO events_other_business_id_environment_id_idx")
    for table, key in KEYS.items():
        op.execute(f"ALTER TABLE {table} RENAME TO {table}_other")
        op.execute(f"ALTER INDEX {table}_pkey RENAME TO {table}_other_pkey")
        op.execute(
            f"CREATE TABLE {table} (LIKE {table}_other INCLUDING DEFAULTS INCLUDING STORAGE, PRIMARY KEY ({key}))"
            " PARTITION BY RANGE (reference)"
        )
        if table == "events":
            op.execute("CREATE INDEX events_of_business ON events (business_id, environment, id)")
        # With no other partition beside it, it has nothing to prove; it brings its indexes along.
        op.execute(f"ALTER TABLE {table} ATTACH PARTITION {table}_other DEFAULT")
