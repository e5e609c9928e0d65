"""`payagg cell move`: the command that reaches two cells' databases."""

import argparse
import asyncio
from typing import Any

from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say
from payagg.entrypoints.settings import Settings, SettingsError
from payagg.extensions.cells.move import MovedBusiness
from payagg.extensions.cells.ports import CELL
from payagg.extensions.cells.settings import CellSettings, known_cells


def move(options: argparse.Namespace, settings: Settings) -> int:
    """Run with the settings of the cell that the business leaves."""
    cells, target_url = known_cells(settings), settings.of(CellSettings).target_database_url
    if cells is None or target_url is None:
        raise SettingsError(
            "PAYAGG_CELLS and PAYAGG_TARGET_DATABASE_URL are required: the cells, and the other's database."
        )
    if options.to not in cells.others:
        raise SettingsError(f"--to must be one of {', '.join(sorted(cells.others))}, the cells beside this one.")
    with database(settings, tell=say) as url:
        done = asyncio.run(_move(options.business, options.to, settings, url, target_url))
    say(f"{options.business} is in the cell {options.to}. {done.payments} payments moved in this run.")
    if done.closed:
        say(f"Its keys were not accepted for {done.closed.total_seconds():.1f} s.")
    return 0


async def _move(business_id: str, to: str, settings: Settings, source_url: str, target_url: str) -> MovedBusiness:
    from payagg.adapters.postgres.store import PostgresStore
    from payagg.adapters.providers.registry import providers_of
    from payagg.adapters.security import AesVault
    from payagg.adapters.system import DatabaseClock, SystemEntropy
    from payagg.extensions.cells.move import CellMove

    source, target = (PostgresStore(url, pool_size=1, pgbouncer=settings.pgbouncer) for url in (source_url, target_url))
    try:
        await _ensure_is(to, settings, target)
        clock = DatabaseClock(source.now)
        await clock.synchronise()
        entropy, vault = SystemEntropy(settings.reference_prefix), AesVault(settings.encryption_keys)
        providers = providers_of(settings.providers, allow_loopback=settings.dev)
        moving = CellMove(source, target, clock, entropy, vault, settings.reference_prefix, to, providers, say)
        return await moving.run(business_id, by=operator())
    finally:
        await source.close()
        await target.close()


async def _ensure_is(cell: str, settings: Settings, database: Any) -> None:
    """Raises SettingsError unless the cell's own servers answer from that database: in any other, no server would have
    the business. Raises Unavailable when they cannot be reached."""
    from payagg.extensions.cells.client import HttpCells

    cells = known_cells(settings)
    assert cells is not None
    asking = HttpCells(cells, settings.of(CellSettings).cell_secret or "")
    try:
        state = await asking.state(cell)
    finally:
        await asking.close()
    async with database.begin() as tx:
        own = await tx.of(CELL).database()
    if own != state.database:
        raise SettingsError(f"PAYAGG_TARGET_DATABASE_URL is not the database that the cell {cell} answers from.")
