"""The archive's files in an object store, and where it is."""

from urllib.parse import urlsplit, urlunsplit

from payagg.adapters.logos import ObjectLogos
from payagg.application.ports.outside import Unavailable
from payagg.entrypoints.settings import Settings
from payagg.extensions.archive.reader import ArchiveReader
from payagg.extensions.archive.settings import ArchiveSettings


class ArchiveUnavailable(Unavailable):
    """The archive's object store cannot be reached."""


class ArchiveObjects(ObjectLogos):
    """The archive's files, which are megabytes."""

    name = "archive"
    call_seconds = 120.0
    fault = ArchiveUnavailable


def archive_reader(settings: Settings) -> ArchiveReader:
    """Contacts nothing, and imports pyarrow only when something is read."""
    return ArchiveReader(ArchiveObjects(archive_place(settings)))


def archive_place(settings: Settings) -> str:
    """The archive's folder or URL."""
    own = settings.of(ArchiveSettings).archive_store
    if own is not None or settings.logo_store is None:
        return own or str(settings.state_dir / "archive")
    logos = urlsplit(settings.logo_store)
    return urlunsplit(logos._replace(path=f"{logos.path.rstrip('/')}/archive"))
