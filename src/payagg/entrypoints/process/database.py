"""The database a command works on: the one of PAYAGG_DATABASE_URL, or the embedded one for as long as it is needed."""

from collections.abc import Iterator
from contextlib import contextmanager

from payagg.entrypoints.settings import Settings, SettingsError


@contextmanager
def database(settings: Settings, *, migrating: bool = False) -> Iterator[str]:
    """The URL of a database with this version's schema.

    The embedded one is migrated on the way. Somebody else's is only with `migrating`: otherwise SettingsError says
    what to run. Raises EmbeddedPostgresError and Unavailable.
    """
    from payagg.adapters.postgres.migrations import is_current, migrate

    if settings.database_url is not None:
        if migrating:
            migrate(settings.database_url)
        elif not is_current(settings.database_url):
            raise SettingsError("The database's schema is not this version's: run `payagg migrate`.")
        yield settings.database_url
        return
    from payagg.adapters.postgres.embedded.server import EmbeddedPostgres

    with EmbeddedPostgres(settings.state_dir) as server:
        if not is_current(server.url):
            migrate(server.url)
        yield server.url
