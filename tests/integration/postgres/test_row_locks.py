"""What a transaction reads in order to decide on it, the next one reads only when the first has ended. On Postgres."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from payagg_testing.builders import (
    AN_ADMIN,
    NOW,
    REFERENCE,
    a_business,
    a_delivery,
    a_gateway,
    a_key,
    a_payment,
    a_transition,
    an_endpoint,
    an_event,
    an_id,
)

from payagg.adapters.postgres.store import PostgresStore, PostgresTransaction
from payagg.application.ports.store import Transaction
from payagg.application.schemas.operations import ResolvePayment
from payagg.domain.anomaly import Anomaly, AnomalyKind
from payagg.domain.business import Role
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import GatewayStatus
from payagg.domain.payment import Trigger
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services
from tests.support.assembly import services_over
from tests.support.postgres_world import somebody_waits
from tests.support.receivers import until

KEY, GATEWAY, DELIVERY = a_key(), a_gateway(status=GatewayStatus.DISABLED), a_delivery()

LOCKS: dict[str, Callable[[Transaction], Awaitable[Any]]] = {
    "a business": lambda tx: tx.businesses.lock("biz_1"),
    "a user's business": lambda tx: tx.members.lock_business("biz_1", "ada"),
    "an API key": lambda tx: tx.api_keys.get("biz_1", KEY.id),
    "a gateway": lambda tx: tx.gateways.lock(GATEWAY.id),
    "a payment": lambda tx: tx.payments.lock(REFERENCE),
    "a provider's health": lambda tx: tx.health.lock("provider_a", Environment.LIVE),
    "an endpoint": lambda tx: tx.endpoints.lock("biz_1", "whe_1"),
    "a delivery": lambda tx: tx.webhook_events.delivery("whe_1", DELIVERY.id),
}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS.keys())
async def test_what_one_transaction_decides_on_the_next_one_waits_for(
    database_url: str, store: PostgresStore, lock: Callable[[Transaction], Awaitable[Any]]
) -> None:
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.api_keys.add(KEY)
        await tx.gateways.add(GATEWAY)
        await tx.endpoints.add(an_endpoint())
        await tx.webhook_events.emit(an_event(), [DELIVERY])
        await tx.health.lock("provider_a", Environment.LIVE)
    await store.add_payment(a_payment())
    order: list[str] = []
    held, done = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with store.begin() as tx:
            assert await lock(tx) is not None
            held.set()
            await done.wait()
            order.append("first")

    async def second() -> None:
        await held.wait()
        async with store.begin() as tx:
            assert await lock(tx) is not None
            order.append("second")

    tasks = [asyncio.create_task(work()) for work in (first, second)]
    # Without the lock the second one ends here, before the first.
    await until(lambda: tasks[1].done() or somebody_waits(database_url))
    done.set()
    await asyncio.gather(*tasks)
    assert order == ["first", "second"]


async def test_the_end_of_personal_data_passes_by_a_payment_that_somebody_holds(
    database_url: str, store: PostgresStore
) -> None:
    held, free = [a_payment(reference=f"PAY-20250131-00000{n}", customer_email="ada@example.com") for n in (1, 2)]
    for payment in (held, free):
        await store.add_payment(payment)
        async with store.begin() as tx:
            await tx.payments.save(*a_transition(payment))
    async with store.begin() as holder, store.begin() as sweeping:
        assert await holder.payments.lock(held.reference) is not None
        swept = asyncio.create_task(sweeping.upkeep.settled_with_payer(NOW + timedelta(days=2), 9))
        await until(lambda: swept.done() or somebody_waits(database_url))
        assert swept.done()
        assert await swept == [free.reference]


class MeetingStore(PostgresStore):
    """Each block ends when another one has come to its own end, or waits for a lock."""

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url, pool_size=4, pgbouncer=False)
        self.database_url, self.ending = database_url, 0

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[PostgresTransaction]:
        async with super().begin() as tx:
            yield tx
            self.ending += 1
            await until(lambda: self.ending > 1 or somebody_waits(self.database_url))


async def refused_of_two(database_url: str, *uses: Callable[[Services], Awaitable[object]]) -> list[ErrorCode]:
    """Two uses that would decide on the same state, were it not locked; the codes of the refusals."""
    meeting = MeetingStore(database_url)
    ended = await asyncio.gather(*(use(services_over(meeting)) for use in uses), return_exceptions=True)
    await meeting.close()
    return [one.code for one in ended if isinstance(one, Refusal)]


async def test_of_two_owners_removed_at_once_the_second_stays(database_url: str, store: PostgresStore) -> None:
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        for owner in ("ada", "bo"):
            await tx.members.add("biz_1", owner, Role.OWNER)
    refused = await refused_of_two(
        database_url,
        lambda services: services.businesses.remove_member("biz_1", "ada", by=AN_ADMIN),
        lambda services: services.businesses.remove_member("biz_1", "bo", by=AN_ADMIN),
    )
    assert refused == [ErrorCode.LAST_OWNER]


async def test_of_two_requests_to_end_a_payment_by_hand_the_second_is_refused(
    database_url: str, store: PostgresStore
) -> None:
    payment, _ = await store.add_payment(a_payment())
    async with store.begin() as tx:
        await tx.payments.save(*a_transition(payment, Trigger.PROCESS))
        await tx.anomalies.add(Anomaly(an_id("anm"), REFERENCE, AnomalyKind.NO_EVIDENCE, "reconciler", {}, NOW))
    command = ResolvePayment(outcome="FAILED", reason="The account is closed.", evidence="Case 4711.")
    uses = [lambda services: services.resolutions.ask(REFERENCE, command, by=AN_ADMIN)] * 2
    assert await refused_of_two(database_url, *uses) == [ErrorCode.RESOLUTION_ALREADY_REQUESTED]
