"""Postgres as part of the package: its server, and the account that runs it."""


class EmbeddedPostgresError(Exception):
    """One line for the operator: the embedded Postgres's fault and what to do."""
