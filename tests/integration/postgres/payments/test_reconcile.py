"""The reconciler's asks on Postgres: shared by workers, the oldest first within the rate, each provider for itself."""

import asyncio
from datetime import timedelta

import pytest

from payagg.application import reconciliation
from payagg.application.reconciliation import HOLD
from payagg.domain.attempt import ASK_AFTER
from payagg.domain.rate_limit import EPOCH
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.provider_world import World

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def providers_send_no_events(world: World) -> None:
    world.fakes.paystack.book.webhooks = WebhookMode.NEVER
    world.fakes.payaza.book.webhooks = WebhookMode.NEVER


async def test_two_workers_ask_once_about_each_payment(world: World) -> None:
    payments = [await world.handed_over() for _ in range(12)]
    world.clock.move(ASK_AFTER[0] * 2)
    other, reconciler = world.other_process(), world.services.reconciler
    book = world.fakes.paystack.book
    held = [attempt for share in reconciler.shares() for attempt in await reconciler._due(*share, EPOCH)]
    assert len(held) == len(payments)
    assert await other.reconciler.run_once() == 0
    world.clock.move(HOLD)
    await asyncio.gather(*(w.reconciler.run_once() for w in (world.services, other, world.services, other)))
    assert {payment.reference: book.count("verify", payment.reference) for payment in payments} == {
        payment.reference: 1 for payment in payments
    }


async def test_after_two_hours_of_downtime_the_oldest_are_asked_first_within_the_rate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "RATE", 20)
    payments = []
    for _ in range(20 + 5):
        payments.append(await world.handed_over())
        world.clock.move(timedelta(seconds=30))
    late = await world.handed_over("provider_b")
    world.clock.move(timedelta(hours=2))
    assert await world.services.reconciler.oldest_unasked() is not None
    await world.services.reconciler.run_once()
    book = world.fakes.paystack.book
    assert {reference for name, reference in book.calls if name == "verify"} == {
        payment.reference for payment in payments[:20]
    }
    # Another provider's payments do not wait behind the backlog.
    assert world.fakes.payaza.book.count("query", late.reference) == 1
    await world.services.reconciler.run_once()
    assert book.count("verify") == 20 + 5
    # Missed instants are skipped: a payment asked now is not due again for the ones in between.
    assert await world.services.reconciler.run_once() == 0
    assert await world.services.reconciler.oldest_unasked() is None
