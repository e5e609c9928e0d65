"""Postgres as part of the package: its server, and the account that runs it."""


class EmbeddedPostgresError(Exception):
    """One line for the operator: what is wrong with the embedded Postgres and what to do."""
