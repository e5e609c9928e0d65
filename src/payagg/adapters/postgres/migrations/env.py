"""Alembic's entry: runs on the connection `migrate` hands in, or writes SQL where none is asked for. A transaction for
each migration, so that one may leave it to build an index without blocking writes."""

from alembic import context

connection = None if context.is_offline_mode() else context.config.attributes["connection"]
context.configure(
    connection=connection,
    dialect_name="postgresql",
    dialect_opts={"paramstyle": "named"},  # of what is written: others double each %
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
