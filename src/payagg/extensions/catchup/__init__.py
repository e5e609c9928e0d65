"""Catching up after a restore into the past: `payagg catch-up` asks providers about what the database lacks."""

from argparse import ArgumentParser

from payagg.entrypoints.extensions import Command, Extension


def _arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "--since", required=True, metavar="INSTANT", help="the instant that the database was restored to"
    )


EXTENSION = Extension(
    commands=(
        Command(
            "Ask providers",
            "catch-up",
            "after a restore, before servers start: ask what happened since",
            _arguments,
            "catch_up:catch_up",
        ),
    )
)
