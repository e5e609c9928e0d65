"""Locks carry our own schema, the first one of the role's search path: a database may hold others' tables, and the
release before takes the same locks."""

# For locks and look-ups that Postgres keeps for a whole database. 0 where the path names no schema that exists.
OWN_SCHEMA = "coalesce((SELECT oid::int FROM pg_namespace WHERE nspname = current_schema()), 0)"
