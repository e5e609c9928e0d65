"""Postgres keeps every promise that a store makes."""

from tests.contracts.store import StoreContract


class TestPostgresStore(StoreContract):
    """Each test has an empty database of its own."""
