"""A provider's day beside ours, over real HTTP and Postgres: what is planted in the provider's books is found."""

from dataclasses import replace

import pytest
from payagg_testing.builders import AN_ADMIN

from payagg.domain.payment import Payment, Status
from payagg.domain.reconciliation import ReconciliationFinding
from payagg.domain.values import Environment
from payagg.entrypoints.dev.fake_providers import WebhookMode
from tests.support.provider_world import World

LIVE = Environment.LIVE
STRANGER = "PAY-20250131-00000X"


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


async def told(world: World) -> set[tuple[str | None, str]]:
    """Each anomaly, which there is once."""
    anomalies = await world.anomalies()
    found = {(anomaly.reference, anomaly.kind.value) for anomaly in anomalies}
    assert len(found) == len(anomalies)
    return found


async def test_each_planted_difference_is_found_and_told_once(world: World) -> None:
    paystack, book = world.fakes.paystack, world.fakes.paystack.book
    payments: list[Payment] = [await world.handed_over(environment=LIVE) for _ in range(7)]
    hidden, other, twice, refunded, part, disputed, agreed = (payment.reference for payment in payments)
    for payment in payments:
        paystack.pay(payment.reference)
    assert {(one.bucket.value, one.effect) for one in await reconciled(world)} == {("PAID_THERE", "MOVED")}
    assert {(await world.read(payment)).status for payment in payments} == {Status.SUCCESS}
    assert await reconciled(world) == []

    book.hidden.add(hidden)
    book.listed_amounts[other] = payments[1].amount - 1
    book.extra.append(replace(book.charges[agreed], reference=STRANGER, id=7))
    book.extra.append(replace(book.charges[twice], id=8))
    paystack.refund(refunded, silently=True)
    paystack.refund(part, 100, silently=True)
    paystack.dispute(disputed, silently=True)
    for _ in range(2):
        assert {(one.reference, one.bucket.value) for one in await reconciled(world)} == {
            (hidden, "HERE_ONLY"),
            (other, "OTHER_AMOUNT"),
            (STRANGER, "THERE_ONLY"),
            (twice, "TWO_THERE"),
            (refunded, "RETURNED_THERE"),
            (part, "RETURNED_THERE"),
            (disputed, "RETURNED_THERE"),
        }
        assert await told(world) == {
            (other, "MISMATCH"),
            (None, "UNKNOWN_REFERENCE"),
            (twice, "SECOND_CHARGE"),
            (refunded, "LATE_REVERSAL"),
            (part, "PARTIAL_REFUND"),
            (disputed, "DISPUTE"),
        }
    assert {(await world.read(payment)).status for payment in payments} == {Status.SUCCESS}
