"""Postgres keeps every promise that a store makes."""

from payagg.testing.store_contract import StoreContract


class TestPostgresStore(StoreContract):
    """Each test has an empty database of its own."""
