"""A provider's day beside ours, over real HTTP and Postgres: what is planted in the provider's books is found."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import AN_ADMIN

from payagg.domain.anomaly import AnomalyKind
from payagg.domain.payment import Payment, Status
from payagg.domain.reconciliation import ReconciliationFinding
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.provider_rigs import launch_parameters
from tests.support.provider_world import World

pytestmark = pytest.mark.anyio
LIVE = Environment.LIVE


@pytest.fixture(autouse=True)
def no_event_ever_comes(world: World) -> None:
    for book in (world.fakes.paystack.book, world.fakes.payaza.book):
        book.webhooks = WebhookMode.NEVER
        book.now = world.clock.now


async def reconciled(world: World, slug: str = "provider_a") -> list[ReconciliationFinding]:
    today = world.clock.now().date()
    runs = world.services.reconciliation_runs
    _, findings = await runs.reconcile(slug, LIVE, today, today, by=AN_ADMIN)
    return findings


async def paid(world: World) -> Payment:
    """A payment that is paid there, and here since a first reconciliation."""
    payment = await world.handed_over(environment=LIVE)
    world.fakes.paystack.pay(payment.reference)
    found = await reconciled(world)
    assert [(one.bucket.value, one.effect) for one in found] == [("PAID_THERE", "MOVED")]
    assert (await world.read(payment)).status is Status.SUCCESS
    return payment


def hide(world: World, payment: Payment) -> None:
    world.fakes.paystack.book.hidden.add(payment.reference)


def other_amount(world: World, payment: Payment) -> None:
    world.fakes.paystack.book.listed_amounts[payment.reference] = payment.amount - 1


def stranger(world: World, payment: Payment) -> None:
    book = world.fakes.paystack.book
    book.extra.append(replace(book.charges[payment.reference], reference="PAY-20250131-00000X", id=7))


def twice(world: World, payment: Payment) -> None:
    book = world.fakes.paystack.book
    book.extra.append(replace(book.charges[payment.reference], id=7))


def refund(world: World, payment: Payment) -> None:
    world.fakes.paystack.refund(payment.reference, silently=True)


def part(world: World, payment: Payment) -> None:
    world.fakes.paystack.refund(payment.reference, 100, silently=True)


def dispute(world: World, payment: Payment) -> None:
    world.fakes.paystack.dispute(payment.reference, silently=True)


@pytest.mark.parametrize(
    ("plant", "buckets", "anomalies"),
    [
        (hide, {"HERE_ONLY"}, []),
        (other_amount, {"OTHER_AMOUNT"}, [AnomalyKind.MISMATCH]),
        (stranger, {"THERE_ONLY"}, [AnomalyKind.UNKNOWN_REFERENCE]),
        (twice, {"TWO_THERE"}, [AnomalyKind.SECOND_CHARGE]),
        (refund, {"RETURNED_THERE"}, [AnomalyKind.LATE_REVERSAL]),
        (part, {"RETURNED_THERE"}, [AnomalyKind.PARTIAL_REFUND]),
        (dispute, {"RETURNED_THERE"}, [AnomalyKind.DISPUTE]),
    ],
)
async def test_each_planted_difference_is_found_and_told_once(
    world: World, plant: Callable[[World, Payment], None], buckets: set[str], anomalies: list[AnomalyKind]
) -> None:
    payment = await paid(world)
    assert await reconciled(world) == []
    plant(world, payment)
    for _ in range(2):
        assert {one.bucket.value for one in await reconciled(world)} == buckets
        assert [anomaly.kind for anomaly in await world.anomalies()] == anomalies
    assert (await world.read(payment)).status is Status.SUCCESS


async def test_a_refund_and_a_chargeback_of_provider_b_are_found_without_an_event(world: World) -> None:
    payment = await world.handed_over("provider_b", environment=LIVE)
    (attempt,) = await world.attempts(payment)
    assert attempt.hand_off is not None
    assert world.fakes.payaza.open(launch_parameters(attempt.hand_off)) is None
    world.fakes.payaza.pay(payment.reference)
    statement = (
        "Merchant Reference,Amount Received,Transaction Fee,Currency,Transaction Status\n"
        f"{payment.reference},{payment.amount // 100}.00,0.00,NGN,Completed\n"
    )
    today = world.clock.now().date()
    runs = world.services.reconciliation_runs
    await runs.reconcile("provider_b", LIVE, today, today, by=AN_ADMIN, statement=statement.encode())
    assert (await world.read(payment)).status is Status.SUCCESS
    world.fakes.payaza.refund(payment.reference, 100)
    world.fakes.payaza.dispute(payment.reference)
    for _ in range(2):
        assert [one.bucket.value for one in await reconciled(world, "provider_b")] == ["RETURNED_THERE"] * 2
        kinds = {anomaly.kind for anomaly in await world.anomalies()}
        assert (kinds, len(await world.anomalies())) == ({AnomalyKind.PARTIAL_REFUND, AnomalyKind.DISPUTE}, 2)


async def test_of_several_workers_one_does_yesterday(world: World) -> None:
    payment = await world.handed_over(environment=LIVE)
    world.fakes.paystack.pay(payment.reference)
    world.clock.move(timedelta(days=1))
    workers = [world.other_process() for _ in range(4)]
    done = await asyncio.gather(*(worker.reconciliation_runs.run_due() for worker in workers))
    assert sum(done) == 2  # provider_a's day and provider_b's
    assert world.fakes.paystack.book.count("list transaction") == 1
    assert (await world.read(payment)).status is Status.SUCCESS
    assert sum([await worker.reconciliation_runs.run_due() for worker in workers]) == 0
    for worker in workers:
        await worker.store.close()  # type: ignore[attr-defined]
