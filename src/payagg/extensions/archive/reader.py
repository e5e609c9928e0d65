"""Reads the archive: where it is, and its files, each compared with its manifest, and the manifest with its row."""

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import msgspec

from payagg.adapters.logos import ObjectLogos
from payagg.application.ports.outside import ObjectStore, Unavailable
from payagg.application.ports.payments import ArchiveDamaged, ProviderCall
from payagg.domain.archived import ArchivePart
from payagg.domain.attempt import Attempt
from payagg.domain.payment import Transition
from payagg.entrypoints.settings import Settings
from payagg.extensions.archive.settings import ArchiveSettings
from payagg.extensions.archive.tables import (
    MANIFEST,
    TABLES,
    History,
    Manifest,
    attempts_of,
    calls_of,
    read_rows,
    transitions_of,
)


@dataclass(frozen=True)
class ArchiveReader:
    objects: ObjectStore

    async def read(
        self, part: ArchivePart, reference: str
    ) -> tuple[list[Transition], list[Attempt], list[ProviderCall]]:
        own = await self.history(part, reference)
        return transitions_of(own["transitions"]), attempts_of(own["attempts"]), calls_of(own["provider_calls"])

    async def history(self, part: ArchivePart, reference: str) -> History:
        """The rows of one payment, by table. Raises ArchiveDamaged, Unavailable."""
        manifest = await self.manifest(part)
        own: History = {}
        for table in TABLES:
            content = await self._content(part, manifest, table)
            try:
                own[table] = list(read_rows(content, TABLES[table], reference))
            except (ValueError, OSError) as error:
                raise ArchiveDamaged(f"{part.folder}: {table} cannot be read: {error}") from error
        return own

    async def contents(self, part: ArchivePart) -> dict[str, bytes]:
        """The files by table, each verified against its digest. Raises ArchiveDamaged, Unavailable."""
        manifest = await self.manifest(part)
        if manifest.objects.keys() != TABLES.keys() or manifest.payments != part.payments:
            raise ArchiveDamaged(f"{part.folder} is not whole")
        contents = {}
        for table, own in manifest.objects.items():
            contents[table] = await self._content(part, manifest, table)
            try:
                rows = sum(1 for _ in read_rows(contents[table], TABLES[table]))
            except (ValueError, OSError) as error:
                raise ArchiveDamaged(f"{part.folder}: {table} cannot be read: {error}") from error
            if rows != own.rows:
                raise ArchiveDamaged(f"{part.folder}: {table} has {rows} rows, and not {own.rows}")
        return contents

    async def manifest(self, part: ArchivePart) -> Manifest:
        assert part.manifest is not None
        return msgspec.json.decode(await self._read_checked(f"{part.folder}/{MANIFEST}", part.manifest), type=Manifest)

    async def _content(self, part: ArchivePart, manifest: Manifest, table: str) -> bytes:
        own = manifest.objects[table]
        return await self._read_checked(f"{part.folder}/{own.name}", bytes.fromhex(own.sha256))

    async def _read_checked(self, path: str, digest: bytes) -> bytes:
        content = await self.objects.get(path)
        if content is None:
            raise ArchiveDamaged(f"{path} is missing")
        if hashlib.sha256(content).digest() != digest:
            raise ArchiveDamaged(f"{path} is not what was written: its SHA-256 differs")
        return content


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
