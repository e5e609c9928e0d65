"""A database restored into the past, while the providers went on: here against the fakes, on a copy made in time."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from payagg_testing.builders import AN_ADMIN
from psycopg import sql

from payagg.adapters.postgres.doctor import examine
from payagg.adapters.postgres.store import PostgresStore
from payagg.domain.payment import Status
from payagg.entrypoints.dev.fake_providers.book import WebhookMode
from tests.support.provider_rigs import launch_parameters
from tests.support.provider_world import World, assembled, world_on

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(database_url, tmp_path) as world:
        yield world


def copied(postgres: str, url: str) -> str:
    """Another database, as this one is now."""
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE restored TEMPLATE {} STRATEGY file_copy").format(sql.Identifier(str(name)))
        )
    return url.replace(f"/{name}?", "/restored?")


async def test_what_was_paid_after_the_restored_instant_is_found(world: World, postgres: str, tmp_path: Path) -> None:
    world.fakes.paystack.book.webhooks = world.fakes.payaza.book.webhooks = WebhookMode.NEVER
    begun_at_a, begun_at_b, left = [await world.payment() for _ in range(3)]
    handed = await world.handed_over()
    kept_at = world.clock.now()
    await world.store.close()
    restored_url = copied(postgres, world.url)

    world.store = PostgresStore(world.url, pool_size=2, pgbouncer=False)
    world.services = assembled(world.store, world.clock, tmp_path)
    await world.process(begun_at_a)
    await world.process(begun_at_b, "provider_b")
    [attempt] = await world.attempts(begun_at_b)
    assert attempt.hand_off is not None
    assert world.fakes.payaza.open(launch_parameters(attempt.hand_off)) is None
    world.fakes.paystack.pay(begun_at_a.reference)
    world.fakes.paystack.pay(handed.reference)
    world.fakes.payaza.pay(begun_at_b.reference)
    await world.store.close()

    world.store = PostgresStore(restored_url, pool_size=2, pgbouncer=False)
    world.services = assembled(world.store, world.clock, tmp_path)
    world.clock.move(timedelta(hours=3))
    done = await world.services.catch_up.run(kept_at, by=AN_ADMIN)
    assert (done.hastened, done.looked_at) == (0, 3), "its first ask is due already"
    assert set(done.found) == {begun_at_a.reference, begun_at_b.reference}
    assert done.unanswered == ()
    assert (await world.read(handed)).status is Status.PENDING
    await world.services.reconciler.run_once()
    await world.services.settlement.expire_due()
    ended = [(await world.read(one)).status for one in (begun_at_a, begun_at_b, handed, left)]
    assert ended == [Status.SUCCESS, Status.SUCCESS, Status.SUCCESS, Status.FAILED]
    assert await world.anomalies() == []
    # The test lives in a year that is over.
    broken = [finding.rule for finding in examine(restored_url).rules if not finding.is_kept]
    assert broken == ["nothing that the worker does has been due for more than a day"]
