"""Cells: several installations with a database and businesses each, behind one address."""

from argparse import ArgumentParser
from pathlib import Path

from payagg.entrypoints.extensions import Command, Extension


def _arguments(command: ArgumentParser) -> None:
    cells = command.add_subparsers(dest="action", required=True)
    cells.add_parser("list", help="compare each cell with the home cell")
    maps = cells.add_parser("map", help="write HAProxy's maps of every cell's keys, businesses and references")
    maps.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="the folder of the maps that haproxy.cfg names"
    )
    maps.add_argument("--haproxy", type=Path, metavar="SOCKET", help="update this running HAProxy too")
    maps.add_argument("--follow", action="store_true", help="repeat every 10 seconds until SIGTERM")
    move = cells.add_parser(
        "move",
        help="move a business to another cell (PAYAGG_TARGET_DATABASE_URL); if it stops, run it again",
    )
    move.add_argument("business", metavar="BUSINESS", help="its id")
    move.add_argument("--to", required=True, metavar="PFX", help="the other cell, as PAYAGG_CELLS calls it")


EXTENSION = Extension(
    settings="settings:CellSettings",
    elsewhere="among_cells:among_cells_of",
    routes="routes:routes",
    middleware="forwarding:forwarding",
    sweeps="gateway_replication:sweeps",
    metrics="metrics:metrics",
    commands=(
        Command(
            "Set up",
            "cell",
            "compare cells, write HAProxy's maps, move a business",
            _arguments,
            "command:cell",
        ),
    ),
)
