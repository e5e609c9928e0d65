"""Where the archive is."""

from dataclasses import dataclass

from payagg.entrypoints import setting_kinds as kinds
from payagg.entrypoints.settings import ExtensionSettings, setting


@dataclass(frozen=True)
class ArchiveSettings(ExtensionSettings):
    archive_store: str | None = setting(
        None,
        kinds.OBJECT_STORE,
        "where the archive is",
        unset="none: `archive` under the logos' URL, or a folder under the state",
    )
