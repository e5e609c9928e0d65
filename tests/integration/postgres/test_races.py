"""Many callers at one moment, on Postgres: one row, one move. The same over HTTP: test_race_crowds.py."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from payagg_testing.builders import AN_ADMIN, NOW, a_business
from payagg_testing.clocks import ManualClock

from payagg.adapters.postgres.store import PostgresStore
from payagg.adapters.system import SystemEntropy
from payagg.application.payments import Initiation
from payagg.application.ports import Unavailable
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.payment import CHECKOUT_TTL, Payment, Status
from payagg.domain.values import Environment, make_reference
from tests.support.assembly import services_over

pytestmark = pytest.mark.anyio
CALLERS = 64


class FewReferences(SystemEntropy):
    """Draws from ten references, in the same order for everybody: collisions are the rule."""

    def __init__(self) -> None:
        super().__init__("PAY")
        self._drawn = 0

    def reference(self, now: datetime) -> str:
        self._drawn += 1
        return make_reference("PAY", now, self._drawn // 2 % 10)


class Process:
    """The use cases as one server process has them: a pool and memory of its own over the shared database."""

    def __init__(self, database_url: str) -> None:
        self.store = PostgresStore(database_url, pool_size=8, pgbouncer=False)
        services = services_over(self.store, clock=ManualClock())
        self.checkout, self.payments = services.checkout, services.payments

    async def initiate(self, amount: int = 150000, **fields: Any) -> Initiation:
        business = replace(a_business(), id=fields.pop("business_id", "biz_1"))
        environment = fields.pop("environment", Environment.SANDBOX)
        return await self.payments.initiate(InitiatePayment(amount=amount, **fields), business, environment)


@pytest.fixture
async def processes(database_url: str) -> AsyncIterator[list[Process]]:
    """Two, over one database."""
    both = [Process(database_url), Process(database_url)]
    async with both[0].store.begin() as tx:
        await tx.businesses.add(a_business())
    yield both
    for process in both:
        await process.store.close()


async def stored(process: Process, reference: str) -> Payment:
    payment = await process.store.find_payment(reference)
    assert payment is not None
    return payment


async def test_one_key_in_two_businesses_and_environments_makes_a_payment_in_each(processes: list[Process]) -> None:
    places = [
        {"business_id": business, "environment": environment, "idempotency_key": "order-1"}
        for business in ("biz_1", "biz_2")
        for environment in Environment
    ]
    # LIVE needs a provider with credentials, which this race is not about: straight to the store.
    first, second = processes
    payments = [
        Payment.initiate(reference=first.payments.entropy.reference(NOW), amount=1000, now=NOW, **place)  # type: ignore[arg-type]
        for place in places * 8
    ]
    answers = await asyncio.gather(
        *((first, second)[n % 2].store.add_payment(payment) for n, payment in enumerate(payments))
    )
    assert [created for _, created in answers].count(True) == len(places)
    for payment, (kept, _) in zip(payments, answers, strict=True):
        assert (kept.business_id, kept.environment) == (payment.business_id, payment.environment)
    assert len({kept.reference for kept, _ in answers}) == len(places)


async def test_colliding_references_never_share_a_payment(processes: list[Process]) -> None:
    few = FewReferences()
    for process in processes:
        object.__setattr__(process.payments, "entropy", few)

    async def insists(number: int) -> Initiation:
        while True:
            try:
                return await processes[number % 2].initiate(amount=1000 + number, idempotency_key=f"order-{number}")
            except Unavailable:
                continue  # eight draws may all be taken when nine references of ten are

    answers = await asyncio.gather(*map(insists, range(10)))
    assert len({answer.payment.reference for answer in answers}) == 10
    assert [answer.payment.amount for answer in answers] == [1000 + n for n in range(10)]
    for answer in answers:
        assert (await stored(processes[0], answer.payment.reference)).amount == answer.payment.amount


async def test_two_outcomes_racing_for_one_payment_move_it_once(processes: list[Process]) -> None:
    reference = (await processes[0].initiate()).payment.reference
    outcomes = [("SUCCESS", "FAILED", "REVERSED")[n % 3] for n in range(CALLERS)]
    answers = await asyncio.gather(
        *(
            processes[n % 2].payments.simulate(reference, outcome, "biz_1", by=AN_ADMIN)
            for n, outcome in enumerate(outcomes)
        ),
        return_exceptions=True,
    )
    won = [answer for answer in answers if not isinstance(answer, BaseException)]
    lost = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(won) == 1
    assert [refusal.code for refusal in lost] == [ErrorCode.PAYMENT_ALREADY_FINAL] * (CALLERS - 1)
    async with processes[0].store.begin() as tx:
        transitions = await tx.payments.transitions(reference)
    assert [(t.sequence, t.to_status) for t in transitions] == [(1, won[0].status)]


async def test_a_expired_payment_swept_by_many_is_expired_once(processes: list[Process]) -> None:
    references = [(await processes[0].initiate()).payment.reference for _ in range(20)]
    for process in processes:
        process.payments.clock.set(NOW + CHECKOUT_TTL)  # type: ignore[attr-defined]
        process.checkout.settlement.clock.set(NOW + CHECKOUT_TTL)  # type: ignore[attr-defined]
    await asyncio.gather(*(processes[n % 2].checkout.settlement.expire_due() for n in range(16)))
    for reference in references:
        async with processes[0].store.begin() as tx:
            transitions = await tx.payments.transitions(reference)
        assert [transition.to_status for transition in transitions] == [Status.FAILED]
