"""Random histories of one charge: its events come late, twice, in any order or never, it is looked up in between, and
then its provider's lists are read. In the end our kobo are the provider's."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast

import pytest
from payagg_testing.builders import AN_ADMIN, REFERENCE, SANDBOX, SECOND, a_payment, a_report, an_attempt

from payagg.application.ports.providers import LinePage
from payagg.domain.adjustment import IN_STATUS, told_of
from payagg.domain.attempt import AttemptState, ChargeFacts
from payagg.domain.payment import Status
from payagg.domain.reconciliation import LineKind, ProviderLine
from payagg.domain.report import Outcome, ProviderReport
from payagg.domain.values import Environment
from tests.contracts.database import put
from tests.support.memory_shop import MemoryShop

AMOUNT, FEE = 150_000, 2_250


@dataclass
class History(MemoryShop):
    """`fee` is on top of the amount, `parts` is how the payment went back, the last part perhaps by a lost dispute. For
    one that was accepted there is the event of a refund, too, which the list gives to the dispute."""

    chance: Random
    fee: int = 0
    parts: list[int] = field(default_factory=list)
    is_disputed: bool = False
    is_accepted: bool = False
    returned: int = 0  # of `parts`, so far

    def __post_init__(self) -> None:
        super().__init__()
        self.fee = self.chance.choice([0, FEE])
        self.parts = self.chance.choice([[], [40_000], [75_000, 75_000], [50_000, 100_000], [AMOUNT + self.fee]])
        self.is_disputed = self.chance.random() < 0.3 and len(self.parts) > 1
        # Of two equal parts, one given back and one disputed, the events cannot say which is which.
        self.is_accepted = self.chance.random() < 0.3 and len(self.parts) == len(set(self.parts)) > 0

    def charge(self) -> ProviderReport:
        is_back = sum(min(part, AMOUNT) for part in self.parts[: self.returned]) == AMOUNT
        facts = ChargeFacts(provider_id="71", fee=FEE, received=AMOUNT + self.fee)
        return a_report(Outcome.REVERSED if is_back else Outcome.SUCCEEDED, facts=facts)

    def back(self, number: int) -> ProviderReport:
        amounts = frozenset({self.parts[number]})
        if (self.is_disputed or self.is_accepted) and number == len(self.parts) - 1:
            lost = {"disputeId": "d", "state": "accepted" if self.is_accepted else "lost"}
            return replace(a_report(Outcome.DISPUTED, amounts=amounts), details=lost)
        return a_report(Outcome.REVERSED, amounts=amounts, details={"refundId": str(number)})

    def lines(self) -> Iterator[ProviderLine]:
        yield ProviderLine(LineKind.CHARGE, "71", AMOUNT, self.clock.now(), self.charge())
        for number, part in enumerate(self.parts):
            back = self.back(number)
            kind = LineKind.DISPUTE if back.outcome is Outcome.DISPUTED else LineKind.REFUND
            yield ProviderLine(kind, str(number), part, self.clock.now(), back)

    def read_statement(self, _content: bytes, _environment: Environment) -> LinePage:
        return LinePage(list(self.lines()), [], None)

    async def told(self, report: ProviderReport, actor: str = "event:provider_a", **asked: Any) -> None:
        self.clock.move(SECOND)
        await self.services.settlement.report(report, "provider_a", SANDBOX, actor, **asked)

    async def happens(self) -> None:
        payment, chance = a_payment(), self.chance
        attempt = an_attempt(payment, 1, AttemptState.HANDED_OFF)
        await put(self.store.transaction, payment, attempt)
        handed = payment.hand_over("provider_a", self.clock.now(), "payer")
        await self.services.settlement.write(self.store.transaction, *handed)
        if chance.random() < 0.3:
            await self.told(a_report(Outcome.FAILED))
        waiting = [self.charge()]
        for number in range(len(self.parts) + 1):
            self.returned = number
            waiting += [self.back(number - 1)] if number else []
            if number == len(self.parts) and self.is_accepted:
                for_it = a_report(Outcome.REVERSED, amounts=frozenset({self.parts[-1]}), details={"refundId": "of d"})
                waiting.append(for_it)
            chance.shuffle(waiting)
            while waiting and chance.random() < 0.6:
                event = waiting.pop()
                for _ in range(chance.choice([0, 1, 1, 1, 2])):
                    await self.told(event)
            if chance.random() < 0.4:
                await self.told(self.charge(), "verify", asked=(await self.attempts(REFERENCE))[0])
        runs = replace(self.services.reconciliation_runs, lists={"provider_a": cast(Any, self)})
        for _ in range(2):
            today = self.clock.now().date()
            await runs.reconcile("provider_a", SANDBOX, today, today, by=AN_ADMIN, statement=b"")

    async def kobo(self) -> int:
        payment = await self.payment(REFERENCE)
        told = told_of(await self.store.transaction.anomalies.of_payment(REFERENCE), AMOUNT)
        counted = [one.effect for one in told if payment.status is not Status.REVERSED or one.kind not in IN_STATUS]
        return sum(counted) + (AMOUNT if payment.status is Status.SUCCESS else 0)


@pytest.mark.rule("description.8")
async def test_after_a_reconciliation_our_kobo_are_the_providers() -> None:
    for seed in range(600):
        history = History(Random(seed))
        await history.happens()
        assert await history.kobo() == AMOUNT - sum(min(part, AMOUNT) for part in history.parts), seed
