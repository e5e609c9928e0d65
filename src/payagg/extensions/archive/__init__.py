"""The archive: `payagg archive` writes the history of ended payments as Parquet files, which `payagg explain` reads."""

from argparse import ArgumentParser

from payagg.entrypoints.cli.arguments import a_date
from payagg.entrypoints.extensions import Command, Extension


def _arguments(command: ArgumentParser) -> None:
    command.add_argument("--before", type=a_date, required=True, metavar="DATE", help="the first day that is not; UTC")
    command.add_argument("--remove", action="store_true", help="and remove what was written and read back from here")


EXTENSION = Extension(
    settings="settings:ArchiveSettings",
    archived_histories="files:archive_reader",
    commands=(
        Command(
            "Keep data in bounds",
            "archive",
            "write the history of payments that ended as Parquet files",
            _arguments,
            "command:archive",
        ),
    ),
)
