"""Several cells may share a database, each in a schema of its own: the first one of its role's search path. PgBouncer
drops a `search_path` in a connection's options, so each cell has a role whose schema has its name; it cannot be renamed
after `migrate`. One primary carries all its cells."""

# For locks and look-ups that Postgres keeps for a whole database. 0 where the path names no schema that exists.
OWN_SCHEMA = "coalesce((SELECT oid::int FROM pg_namespace WHERE nspname = current_schema()), 0)"
