"""Postgres keeps every promise about console sessions, each by its index."""

from tests.contracts.console_sessions import ConsoleSessionContract


class TestConsoleSessionsOnPostgres(ConsoleSessionContract):
    """Each test has an empty database of its own."""
