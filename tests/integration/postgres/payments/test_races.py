"""One hand-off and one charge, however many callers and servers race, whoever dies, and whatever COMMIT is untold."""

import asyncio
from pathlib import Path

import pytest
from payagg_testing.network_faults import DropReply

from payagg.adapters.postgres.store import PostgresStore
from payagg.application.schemas.payments import ProcessPayment
from payagg.domain.attempt import LEASE, AttemptState
from payagg.domain.payment import Payment, Status
from payagg.entrypoints.dev.fake_providers import Fault
from tests.support.postgres_world import by_proxy
from tests.support.provider_world import PATIENCE, World, assembled

pytestmark = pytest.mark.anyio
COMMAND = ProcessPayment(gateway_slug="provider_a")


async def handed_off(world: World, payment: Payment) -> list[str]:
    return [a.provider_reference for a in await world.attempts(payment) if a.state is AttemptState.HANDED_OFF]


@pytest.mark.rule("checkout.4")
async def test_64_callers_on_two_servers_share_one_charge_and_one_hand_off(world: World) -> None:
    payment = await world.payment()
    servers = [world.services.checkout, world.other_process().checkout]
    answers = await asyncio.gather(*(servers[n % 2].process(payment.reference, COMMAND) for n in range(64)))
    assert len({answer.checkout_url for answer in answers}) == 1
    assert world.fakes.paystack.book.count("initialize") == 1
    assert await world.history(payment) == ["PENDING"]
    assert await world.events(payment) == (1, 1)


@pytest.mark.parametrize(
    ("label", "slug", "calls"),
    [
        # The provider knows of a charge that nobody was sent to; it is asked before a second one is begun.
        ("P4", "provider_a", ["initialize", "verify", "initialize"]),
        ("P5", "provider_a", ["initialize"]),
        ("P4", "provider_b", []),
    ],
)
async def test_a_claimant_killed_at_any_step_leaves_at_most_one_hand_off(
    world: World, label: str, slug: str, calls: list[str]
) -> None:
    payment = await world.payment()
    await world.dies_at(label, "process", payment.reference, slug)
    world.clock.move(LEASE)  # the dead claimant's lease runs out
    answers = await asyncio.gather(*(world.process(payment, slug) for _ in range(8)))
    assert len({answer.checkout_url for answer in answers}) == 1
    [given] = await handed_off(world, payment)
    book = world.fakes.paystack.book
    assert [name for name, _ in book.calls] == calls
    if slug == "provider_a":
        assert all(charge.opened == 1 for charge in book.charges.values())
        assert str(book.charges[given].id) in answers[0].checkout_url
        world.fakes.paystack.pay(given)
        assert book.count_paid(payment.reference) == 1


async def test_a_late_claimant_cannot_record_over_the_one_who_took_over(world: World) -> None:
    payment = await world.payment()
    world.fakes.paystack.book.faults.append(Fault.SLOW)
    slow = asyncio.create_task(world.process(payment))
    async with asyncio.timeout(PATIENCE):
        while not await world.attempts(payment):  # noqa: ASYNC110 - the claim is in the database
            await asyncio.sleep(0.02)
    world.clock.move(LEASE)
    second = await world.other_process().checkout.process(payment.reference, COMMAND)
    first = await slow
    assert first.checkout_url == second.checkout_url
    assert len(await handed_off(world, payment)) == 1


async def test_a_claim_whose_commit_had_no_answer_is_gone_on_with_at_once(world: World, tmp_path: Path) -> None:
    payment = await world.payment()
    async with by_proxy(world.url) as (proxy, url):
        store = PostgresStore(url, pool_size=2, pgbouncer=False)
        proxy.impose(DropReply(after=b"INSERT INTO attempts"), times=1)
        checkout = assembled(store, world.clock, tmp_path).checkout
        async with asyncio.timeout(LEASE.total_seconds() / 2):
            handed = await checkout.process(payment.reference, COMMAND)
        await store.close()
    assert handed.status is Status.PENDING
    [attempt] = await world.attempts(payment)
    assert (attempt.number, attempt.state) == (1, AttemptState.HANDED_OFF)
    assert len(world.fakes.paystack.book.charges) == 1
