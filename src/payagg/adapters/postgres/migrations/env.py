"""Alembic's entry: runs on the connection `migrate` hands in. A transaction for each migration, so that one may leave
it to build an index without blocking writes."""

from alembic import context

from payagg.adapters.postgres.schema.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transaction_per_migration=True
)
with context.begin_transaction():
    context.run_migrations()
