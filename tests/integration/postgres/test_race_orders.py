"""Every order in which the statements of two calls about one payment reach Postgres; `make lab` tries all pairs."""

from pathlib import Path

from lab.races.orders import a_stepped_grid, every_order


async def test_no_order_of_two_payers_statements_breaks_a_rule(database_url: str, tmp_path: Path) -> None:
    async with a_stepped_grid(database_url, tmp_path) as (grid, turns):
        found = await every_order(grid, turns, ("process", "process"))
    print(found)
    assert found.broken == []
    assert found.orders > 20
    assert found.waited > 0, "for a lock of the other"
