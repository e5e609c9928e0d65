"""The database of a command: PAYAGG_DATABASE_URL, or the embedded one while it is needed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from payagg.entrypoints.settings import Settings, SettingsError


def _silent(_: str) -> None:
    """For commands that print only their answer."""


@contextmanager
def database(
    settings: Settings, *, migrating: bool = False, any_schema: bool = False, tell: Callable[[str], None] = _silent
) -> Iterator[str]:
    """The URL of a database with this version's schema; `tell` is called with a line that names the database, and
    before each slow step.

    The embedded one is migrated. Another is migrated only with `migrating`; otherwise SettingsError names the command
    to run, unless `any_schema`. SettingsError also names what blocks a migration. Raises EmbeddedPostgresError and
    Unavailable with the cause.
    """
    from payagg.adapters.postgres.connections import where
    from payagg.adapters.postgres.migrations import is_current

    with database_as_it_is(settings, tell=tell) as url:
        if settings.database_url is None:
            if not is_current(url):
                tell("Bringing the schema up to date ...")
                _migrate(url, _silent)
        elif not migrating and not any_schema and not is_current(url):
            raise SettingsError("The database's schema is not this version's: run `payagg migrate`.")
        else:
            tell(f"The database is {where(url)}.")
            if migrating:
                _migrate(url, tell)
        yield url


@contextmanager
def database_as_it_is(settings: Settings, *, tell: Callable[[str], None] = _silent) -> Iterator[str]:
    """The same, whatever its schema."""
    from payagg.adapters.postgres.connections import ensure_reachable

    if settings.database_url is not None:
        ensure_reachable(settings.database_url)
        yield settings.database_url
        return
    from payagg.adapters.postgres.embedded.data_folder import find_package
    from payagg.adapters.postgres.embedded.server import EmbeddedPostgres

    find_package()  # raises what to install, before any other output
    folder = settings.state_dir / "postgres"
    verb = "Opening the" if os.path.exists(folder) else "Making a Postgres"
    tell(f"{verb} database in {folder} ...")
    with EmbeddedPostgres(settings.state_dir) as server:
        yield server.url


def _migrate(database_url: str, tell: Callable[[str], None]) -> None:
    # Alembic alone is a tenth of the time that a server takes to start.
    from payagg.adapters.postgres.migrations.upgrade import MigrationBlocked, migrate

    try:
        migrate(database_url, tell=tell)
    except MigrationBlocked as blocked:
        raise SettingsError(str(blocked)) from blocked


def destroy(state_dir: Path) -> None:
    """Stops and deletes the embedded database of a state folder."""
    from payagg.adapters.postgres.embedded.server import EmbeddedPostgres

    EmbeddedPostgres(state_dir).destroy()
