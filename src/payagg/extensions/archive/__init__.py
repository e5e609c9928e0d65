"""The archive: `payagg archive` writes the history of ended payments as Parquet files, which `payagg explain` reads."""

from argparse import ArgumentParser

from payagg.entrypoints.cli.arguments import a_date
from payagg.entrypoints.extensions import Command, Extension


def _arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "--before", type=a_date, required=True, metavar="DATE", help="only payments of days before it; UTC"
    )
    command.add_argument(
        "--remove", action="store_true", help="remove from the database what was written and read back"
    )


EXTENSION = Extension(
    settings="settings:ArchiveSettings",
    archived_histories="reader:archive_reader",
    commands=(
        Command(
            "Manage stored data",
            "archive",
            "move the history of ended payments to Parquet files",
            _arguments,
            "command:archive",
        ),
    ),
)
