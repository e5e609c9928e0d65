"""`payagg cell`: the cells, as an operator sees them, and the move that reaches two cells' databases."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from payagg.application.ports.outside import Unavailable
from payagg.application.use_case import in_transaction
from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say, store_at
from payagg.entrypoints.settings import Settings, SettingsError
from payagg.extensions.cells.cell_maps import write_maps
from payagg.extensions.cells.domain import Cells, CellState
from payagg.extensions.cells.settings import CellSettings, known_cells, listed_cells

if TYPE_CHECKING:
    from payagg.extensions.cells.move import MovedBusiness


def cell(options: argparse.Namespace, settings: Settings) -> int:
    return {"list": _list, "map": write_maps, "move": _move}[options.action](options, settings)


def _list(_: argparse.Namespace, settings: Settings) -> int:
    """Exit status 1 when a cell cannot be reached or differs from the home cell."""
    cells = listed_cells(settings)
    states = asyncio.run(_states(cells, settings.of(CellSettings).cell_secret or ""))
    is_well = True
    for (name, origin), state in zip(cells.origins.items(), states, strict=True):
        if isinstance(state, Unavailable):
            facts, faults = "-", [f"unreachable: {state}"]
        else:
            facts = f"release {state.release}, schema {state.schema}, gateways {state.gateways}"
            faults = list(_faults(name, state, states[0], cells))
        is_well = is_well and not faults
        say(f"{name}  {origin}  {facts}  {'; '.join(faults) or ('home' if name == cells.home else 'same')}")
    return 0 if is_well else 1


def _faults(name: str, state: CellState, home: CellState | Unavailable, cells: Cells) -> Iterator[str]:
    """How a cell differs from the required state, in words."""
    if state.name != name:
        yield f"its PAYAGG_REFERENCE_PREFIX is {state.name}"
    if state.cells != list(cells.origins):
        yield f"its PAYAGG_CELLS are {', '.join(state.cells)}"
    if not state.fits:
        yield f"its database is not on schema {state.schema}: run `payagg migrate` there"
    if isinstance(home, Unavailable):
        return
    missing = [kid for kid, fingerprint in home.keys.items() if state.keys.get(kid) != fingerprint]
    if missing:
        yield f"encryption keys missing or different: {', '.join(missing)}"
    if state.gateways != home.gateways:
        yield f"gateways differ from {home.gateways}"


async def _states(cells: Cells, secret: str) -> list[CellState | Unavailable]:
    from payagg.extensions.cells.client import HttpCells, or_away

    async with aclosing(HttpCells(cells, secret)) as asking:
        return await asyncio.gather(*(or_away(asking.state(name)) for name in cells.origins))


def _move(options: argparse.Namespace, settings: Settings) -> int:
    """Run with the settings of the cell that the business leaves."""
    cells, target_url = known_cells(settings), settings.of(CellSettings).target_database_url
    if cells is None or target_url is None:
        raise SettingsError(
            "PAYAGG_CELLS and PAYAGG_TARGET_DATABASE_URL are required: the cells, and the other's database."
        )
    if options.to not in cells.others:
        raise SettingsError(f"--to must be one of {', '.join(sorted(cells.others))}, the cells beside this one.")
    with database(settings, tell=say) as url:
        done = asyncio.run(_move_between(options.business, options.to, settings, url, target_url))
    say(f"{options.business} is in the cell {options.to}. {done.payments} payments moved in this run.")
    if done.closed:
        say(f"Its keys were not accepted for {done.closed.total_seconds():.1f} s.")
    return 0


async def _move_between(
    business_id: str, to: str, settings: Settings, source_url: str, target_url: str
) -> "MovedBusiness":
    from payagg.adapters.security import AesVault
    from payagg.adapters.system import DatabaseClock, SystemEntropy
    from payagg.extensions.cells.move import CellMove

    async with store_at(source_url, settings) as source, store_at(target_url, settings) as target:
        await _ensure_is(to, settings, target)
        clock = DatabaseClock(source.now)
        await clock.synchronise()
        entropy, vault = SystemEntropy(settings.reference_prefix), AesVault(settings.encryption_keys)
        moving = CellMove(source, target, clock, entropy, vault, settings.reference_prefix, to, say)
        return await moving.run(business_id, by=operator())


async def _ensure_is(cell: str, settings: Settings, database: Any) -> None:
    """Raises SettingsError unless the cell's own servers answer from that database: in any other, no server would have
    the business. Raises Unavailable when they cannot be reached."""
    from payagg.extensions.cells.client import HttpCells
    from payagg.extensions.cells.postgres import CellRows

    cells = known_cells(settings)
    assert cells is not None
    async with aclosing(HttpCells(cells, settings.of(CellSettings).cell_secret or "")) as asking:
        state = await asking.state(cell)
    own = await in_transaction(database, lambda tx: tx.of(CellRows).database())
    if own != state.database:
        raise SettingsError(f"PAYAGG_TARGET_DATABASE_URL is not the database that the cell {cell} answers from.")
