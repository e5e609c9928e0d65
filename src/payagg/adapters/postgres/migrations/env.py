"""Alembic's entry: runs on the connection `migrate` hands in, inside its transaction."""

from alembic import context

from payagg.adapters.postgres.schema.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
