"""Postgres keeps every promise about payments whose history leaves for the archive."""

from tests.contracts.archive import ArchiveContract


class TestArchiveOnPostgres(ArchiveContract):
    """Each test has an empty database of its own."""
