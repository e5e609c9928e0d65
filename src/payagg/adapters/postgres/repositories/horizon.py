"""The transactions that may still commit what no list shows yet, and since when each runs."""

# The server does not tell one role when another's transaction began, not even where both are ours, as after a change of
# the password by a second role. Who may add payments counts as ours. No transaction of ours lasts longer than this: see
# TIMEOUTS.
BEGAN = "CASE WHEN backend_type IS NULL THEN now() - interval '1 minute' ELSE xact_start END"
WRITING = """pg_stat_activity
    WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    AND (backend_type IS NOT NULL OR has_table_privilege(usesysid, 'payments', 'INSERT'))"""
