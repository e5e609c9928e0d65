"""What the archive needs: its repositories, and a store of objects that may be away."""

from typing import TYPE_CHECKING

from payagg.application.ports.outside import Unavailable
from payagg.application.ports.store import Repository

if TYPE_CHECKING:
    from payagg.extensions.archive.postgres import PostgresArchive, PostgresArchiveParts


class ArchiveUnavailable(Unavailable):
    """The archive's object store cannot be reached."""


ARCHIVE: "Repository[PostgresArchive]" = Repository("payagg.extensions.archive.postgres:PostgresArchive")
PARTS: "Repository[PostgresArchiveParts]" = Repository("payagg.extensions.archive.postgres:PostgresArchiveParts")
