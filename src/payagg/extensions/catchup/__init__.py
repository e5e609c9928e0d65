"""Catching up after a restore into the past: `payagg catch-up` asks providers about what the database lacks."""

from argparse import ArgumentParser

from payagg.entrypoints.extensions import Command, Extension


def _arguments(command: ArgumentParser) -> None:
    command.add_argument("--since", required=True, metavar="INSTANT", help="what the database was restored to")


EXTENSION = Extension(
    commands=(
        Command(
            "Keep money right",
            "catch-up",
            "after a restore into the past, before servers start: ask providers",
            _arguments,
            "command:catch_up",
        ),
    )
)
