"""A claim whose COMMIT Postgres did and nobody was told of: the caller goes on with it at once."""

import asyncio
from pathlib import Path

import pytest
from payagg_testing.network_faults import DropReply

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.schemas.payments import ProcessPayment
from payagg.domain.attempt import AttemptState
from payagg.domain.payment import Status
from tests.support.postgres_world import by_proxy
from tests.support.provider_world import World, assembled

pytestmark = pytest.mark.anyio
SECONDS = 10.0  # half of a lease


async def test_a_claim_whose_commit_had_no_answer_is_gone_on_with_at_once(world: World, tmp_path: Path) -> None:
    payment = await world.payment()
    async with by_proxy(world.url) as (proxy, url):
        store = PostgresStore(url, pool_size=2, pgbouncer=False)
        proxy.impose(DropReply(after=b"INSERT INTO attempts"), times=1)
        checkout = assembled(store, world.clock, tmp_path).checkout
        async with asyncio.timeout(SECONDS):
            handed = await checkout.process(payment.reference, ProcessPayment(gateway_slug="provider_a"))
        await store.close()
    assert handed.status is Status.PENDING
    [attempt] = await world.attempts(payment)
    assert (attempt.number, attempt.state) == (1, AttemptState.HANDED_OFF)
    assert len(world.fakes.paystack.book.charges) == 1
