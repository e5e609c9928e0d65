"""What happens at a provider, and every way in which we may hear of it: its events, late, twice or never, a look-up, a
status check, its lists, and a process that dies between two commits. In the end our kobo are the provider's."""

import csv
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import msgspec
import pytest
from payagg_testing.builders import AN_ADMIN, HOUR, MINUTE, REFERENCE, SANDBOX, a_report, an_attempt, an_endpoint
from payagg_testing.clocks import START
from payagg_testing.memory import MemoryStore
from payagg_testing.memory.state import State
from payagg_testing.memory.store import MemoryTransaction

from payagg.adapters.providers import PROVIDERS
from payagg.application.ports.providers import LinePage
from payagg.application.schemas.payments import PaymentAdjustment
from payagg.application.schemas.webhooks import EventBody
from payagg.domain.adjustment import LOST, is_named
from payagg.domain.attempt import AttemptState
from payagg.domain.errors import Refusal
from payagg.domain.payment_search import SUMMARY_MAX, PaymentFilter
from payagg.domain.reconciliation import CLOCKS_APART, LineKind, ProviderLine
from payagg.domain.report import REPEATED_FOR, Outcome, ProviderReport
from payagg.domain.values import Environment
from tests.unit.application.payments.test_orders_of_facts import (
    AMOUNT,
    DECLINED,
    FIRST,
    PART,
    SECOND,
    SHORT,
    Fact,
    dispute,
    paid,
    refund,
    reversed_,
)
from tests.unit.application.payments.test_settlement import ReportedPayment

SIGNED = {"x-provider_a-signature": "account of provider_a"}
FEE = 2_250
OF_SHORT = "of short"  # the refund of money that differed from the payment
OF_DISPUTE = "of d1"  # the refund that a provider makes for an accepted dispute; its list gives it to the dispute
LOST_WHOLE = reversed_(disputeId="d1", state="lost")
STORIES: dict[str, Sequence[Fact]] = {
    "declined, then paid": [DECLINED, paid()],
    "declined, then paid and refunded": [DECLINED, paid(), refund("r1")],
    "refunded with its fee": [paid(), refund("r1", AMOUNT + FEE)],
    "refunded in equal halves": [paid(), refund("r1", SHORT), refund("r2", SHORT)],
    "dispute lost": [paid(), dispute("opened"), LOST_WHOLE],
    "dispute won": [paid(), dispute("opened"), dispute("won")],
    "dispute of a part lost": [paid(), refund("r1", PART), dispute("lost", AMOUNT - PART)],
    "dispute accepted": [paid(), dispute("accepted"), refund(OF_DISPUTE)],
    "dispute of a part accepted": [paid(), dispute("accepted", PART), refund(OF_DISPUTE, PART)],
    "short, then right": [paid(amount=SHORT), paid("t2")],
    "paid twice": [paid(), paid("t2"), refund("r1", PART)],
}
# Of a provider whose lists alone tell what went back, as provider_b, whose payers may transfer twice.
LISTED: dict[str, Sequence[Fact]] = {
    "refunded": [paid(), refund("r1")],
    "dispute accepted": [paid(), dispute("opened"), dispute("accepted")],
    "paid twice, both back": [paid(), paid("t2"), refund("r1"), refund("r2")],
    "paid twice, one back": [paid(), paid("t2"), refund("r1")],
}


class Died(BaseException):
    """The process."""


class MortalStore(MemoryStore):
    """Its process dies right after `left` more commits that change something."""

    left = 0

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[MemoryTransaction]:
        async with MemoryStore.begin(self) as tx:
            before = self.state.snapshot() if self.left else None
            yield tx
            is_change = before is not None and self.state.snapshot() != before
        if is_change:
            self.left -= 1
            if not self.left:
                raise Died


@dataclass
class Provider:
    """The facts so far. `tells`: its events and a charge's status tell what went back."""

    tells: bool
    facts: Sequence[Fact] = ()
    dates: Sequence[datetime] = ()

    def of(self, charge: str) -> list[ProviderReport]:
        return [one.report for one in self.facts if one.report.provider_reference == charge]

    def returned(self, charge: str) -> int:
        """The merchant's kobo that went back, a fee on top not counted. A dispute counts by its last state."""
        own = [one for one in self.of(charge) if one.details.get("refundId") not in (OF_DISPUTE, OF_SHORT)]
        last = [one for one in own if "disputeId" in one.details][-1:]
        back = [one for one in own if one.outcome is Outcome.REVERSED and "disputeId" not in one.details]
        back += [one for one in last if one.details["state"] in LOST]
        return sum(min(AMOUNT, max(one.amounts)) for one in back)

    @property
    def kobo(self) -> int:
        """What the merchant has: money of another figure than the payment's is none of his."""
        came = [one.report for one in self.facts if one.report.outcome is Outcome.SUCCEEDED]
        return sum(AMOUNT for one in came if AMOUNT in one.amounts) - sum(map(self.returned, (FIRST, SECOND)))

    def report(self, charge: str, *_: object) -> ProviderReport:
        """The charge's status, of its last transaction."""
        tries = [one for one in self.of(charge) if one.outcome in (Outcome.SUCCEEDED, Outcome.FAILED)]
        if not tries:
            return a_report(Outcome.UNPAID, provider_reference=charge)
        is_all_back = self.tells and self.returned(charge) == AMOUNT
        return replace(tries[-1], outcome=Outcome.REVERSED) if is_all_back else tries[-1]

    def lines(self) -> Iterator[ProviderLine]:
        """The charges, the refunds, and the dispute as it stands."""
        dispute = None
        for one, at in zip(self.facts, self.dates, strict=True):
            said = one.report
            if said.outcome is Outcome.SUCCEEDED and self.tells:
                status = self.report(said.provider_reference).outcome
                yield ProviderLine(LineKind.CHARGE, "71", AMOUNT, at, replace(said, outcome=status))
            elif said.details.get("refundId", OF_DISPUTE) != OF_DISPUTE:
                yield ProviderLine(LineKind.REFUND, said.details["refundId"], max(said.amounts), at, said)
            elif "disputeId" in said.details:
                dispute = ProviderLine(LineKind.DISPUTE, "d1", AMOUNT, at, said)
        yield from [dispute] if dispute else []


@dataclass(frozen=True)
class Moment:
    """`left`: the channels that are not used yet; a fact's event is one, under the fact's number."""

    state: State
    now: datetime
    happened: tuple[datetime, ...]
    left: tuple[str, ...]
    path: tuple[str, ...] = ()

    def essence(self) -> object:
        """What decides what may follow."""
        tables, young = self.state, self.now - REPEATED_FOR
        return (
            (len(self.happened), frozenset(self.left), "dies" in self.path),
            tuple((one.status, one.failure_reason, one.fee) for one in tables.payments.values()),
            tuple((one.confirmed_at is None, one.last_decline, one.provider_id) for one in tables.attempts.values()),
            tuple((one.kind, str(one.details), one.source) for one in tables.anomalies.values()),
            tuple((one.at > young, *(one.at > at for at in self.happened)) for one in tables.anomalies.values()),
            tuple(one.handled_at is None for one in tables.inbox.values()),
        )


class Channels(ReportedPayment):
    def __init__(self, story: Sequence[Fact], *, tells: bool = True, renames: bool = False) -> None:
        self.mortal = MortalStore()
        super().__init__(store=self.mortal)
        self.story, self.provider, self.renames = story, Provider(tells), renames
        self.a.says = cast(Any, self.provider)
        self.runs = replace(self.services.reconciliation_runs, lists={"provider_a": cast(Any, self)})

    async def begin(self) -> None:
        await self.open()
        await self.with_payment(an_endpoint())
        await self.store.transaction.attempts.add(an_attempt(number=2, state=AttemptState.UNKNOWN))

    def read_statement(self, _content: bytes, _environment: Environment) -> LinePage:
        return LinePage(list(self.provider.lines()), [], None)

    async def hear(self, channel: str) -> None:
        self.clock.move(MINUTE)
        if channel == "list":
            today = self.clock.now().date()
            await self.runs.reconcile("provider_a", SANDBOX, START.date(), today, by=AN_ADMIN, statement=b"")
        elif channel == "verify":
            self.clock.move(HOUR)
            with suppress(Refusal):
                await self.verification.verify(REFERENCE)
        elif channel == "check":
            due = [attempt.next_ask_at for attempt in await self.attempts(REFERENCE) if attempt.next_ask_at]
            self.clock.set(max([self.clock.now(), *due]))
            await self.reconciler.run_once()
        elif channel == "late":
            self.clock.move(REPEATED_FOR)
            await self.services.provider_events.retry_due()
        else:
            for number in (int(channel), 10 + int(channel)):  # twice, in other bytes
                body = self.a.event(self.event(self.story[int(channel)].report), number)
                await self.services.provider_events.receive(PROVIDERS[0].routes[0], body, SIGNED)

    def event(self, report: ProviderReport) -> ProviderReport:
        name = {"refundId": "event of " + report.details["refundId"]} if "refundId" in report.details else {}
        return replace(report, details={**report.details, **name}) if self.renames else report

    async def put(self, moment: Moment) -> None:
        self.store.state.restore(moment.state.snapshot())
        self.clock.set(moment.now)
        self.provider.facts, self.provider.dates = self.story[: len(moment.happened)], moment.happened

    async def following(self, moment: Moment, channel: str, deaths: int) -> AsyncIterator[Moment]:
        """After hearing by `channel`, and after each of its commits that was the process's last."""
        left = tuple(one for one in moment.left if one != channel)
        for commits in range(deaths + 1):
            await self.put(moment)
            self.mortal.left = commits
            path = (*moment.path, channel)
            try:
                await self.hear(channel)
            except Died:
                path = (*path, "dies")
            is_over = self.mortal.left > 0
            self.mortal.left = 0
            if is_over:  # it has no more commits
                return
            yield Moment(self.store.state.snapshot(), self.clock.now(), moment.happened, left, path)

    async def ends(self, *channels: str, deaths: int = 0) -> AsyncIterator[Moment]:
        """Each moment at which all has happened, once the provider's lists are read. What no list has, every event
        tells."""
        start = Moment(self.store.state.snapshot(), self.clock.now(), (), channels)
        waiting, seen = [start], {start.essence()}
        while waiting:
            moment = waiting.pop()
            found = []
            number = len(moment.happened)
            if number < len(self.story):
                is_told = self.provider.tells or self.story[number].report.outcome is Outcome.SUCCEEDED
                now, left = moment.now + 2 * CLOCKS_APART, (*moment.left, *([str(number)] if is_told else []))
                found = [Moment(moment.state, now, (*moment.happened, now), left, (*moment.path, "happens"))]
            elif self.provider.tells or not any(map(str.isdigit, moment.left)):
                await self.put(moment)
                for channel in ("late", "list") if "dies" in moment.path else ("list",):
                    await self.hear(channel)
                yield moment
            for channel in moment.left:
                most = 0 if "dies" in moment.path else deaths
                found += [one async for one in self.following(moment, channel, most)]
            fresh = [one for one in found if one.essence() not in seen]
            seen |= {one.essence() for one in fresh}
            waiting += fresh

    async def kobo(self) -> int:
        """What the merchant has, by his summary."""
        everything = PaymentFilter("biz_1", SANDBOX, since=START, until=START + SUMMARY_MAX)
        summary = await self.services.payment_search.summary_csv(everything, of_all=True)
        rows = csv.DictReader(summary.decode().splitlines())
        return sum(int(row["effect"] or (row["amount"] if row["status"] == "SUCCESS" else 0)) for row in rows)

    async def shown(self) -> list[PaymentAdjustment]:
        """The adjustments that his list of payments shows."""
        (shown,) = (await self.services.payment_search.page(PaymentFilter("biz_1", SANDBOX), None, 1)).payments
        return shown.adjustments

    async def check(self, *channels: str, deaths: int = 0) -> None:
        """At each end the kobo are the provider's, events are numbered without a gap, each refund and each state of a
        dispute was told once, the merchant's list shows what the last event did, and lists that are read again tell
        nothing."""
        await self.begin()
        ends = set()
        async for moment in self.ends(*channels, deaths=deaths):
            end = replace(moment, state=self.store.state, left=(), path=()).essence()
            if end in ends:
                continue
            ends.add(end)
            assert await self.kobo() == self.provider.kobo, moment.path
            events, deliveries = await self.sent()
            assert [event.sequence for event in events] == list(range(1, len(deliveries) + 1)), moment.path
            last = msgspec.json.decode(events[-1].body, type=EventBody).data
            assert await self.shown() == last.adjustments, moment.path
            before = await self.store.transaction.anomalies.of_payment(REFERENCE)
            # One that counts for nothing was taken for other money, until a list told it.
            counted = [one.details for one in before if is_named(one.details) and one.details.get("amount") != 0]
            names = [(one.get("refundId"), one.get("disputeId"), one.get("state")) for one in counted]
            assert len(names) == len(set(names)), moment.path
            assert [one for one in self.store.state.inbox.values() if one.handled_at is None] == [], moment.path
            await self.hear("list")
            assert await self.store.transaction.anomalies.of_payment(REFERENCE) == before, moment.path


@pytest.mark.rule("description.8")
@pytest.mark.parametrize("channels", [("late", "list"), ("verify", "check")])
@pytest.mark.parametrize("story", STORIES)
async def test_our_kobo_are_the_providers_however_we_hear_of_it(story: str, channels: Sequence[str]) -> None:
    await Channels(STORIES[story]).check(*channels)


@pytest.mark.parametrize("story", [story for story in STORIES if "refunded" in story])
async def test_they_are_where_an_event_names_a_refund_otherwise_than_the_list(story: str) -> None:
    await Channels(STORIES[story], renames=True).check("late", "list")


@pytest.mark.parametrize("story", LISTED)
async def test_they_are_where_lists_alone_tell_what_went_back(story: str) -> None:
    await Channels(LISTED[story], tells=False).check("verify", "list")


async def test_they_are_where_two_attempts_were_paid_and_each_is_refunded() -> None:
    twice = [paid(), paid("t2", of=SECOND), refund("r1"), refund("r2", of=SECOND)]
    await Channels(twice, renames=True).check("late")


@pytest.mark.parametrize(
    ("story", "channel"),
    [("declined, then paid", "check"), ("paid twice", "list"), ("refunded with its fee", "verify")],
)
async def test_a_process_may_die_after_each_of_its_commits(story: str, channel: str) -> None:
    await Channels(STORIES[story]).check(channel, deaths=9)


@pytest.mark.parametrize("channel", ["check", "verify"])
@pytest.mark.parametrize("story", [STORIES["declined, then paid and refunded"], LISTED["paid twice, one back"]])
async def test_what_a_process_left_when_it_died_is_found_by_the_same_channel_alone(
    story: Sequence[Fact], channel: str
) -> None:
    """The first event was heard, the others are lost."""
    world = Channels(story)
    await world.begin()
    happened = (world.clock.now(),) * len(story)
    await world.put(Moment(world.store.state.snapshot(), happened[0], happened, ()))
    await world.hear("0")
    before = Moment(world.store.state.snapshot(), world.clock.now(), happened, ())
    left = [moment async for moment in world.following(before, channel, 9)]
    assert len(left) > 2
    for moment in left:
        await world.put(moment)
        for _ in range(3):
            await world.hear(channel)
        assert await world.kobo() == world.provider.kobo, moment.path
        assert (await world.events(REFERENCE))[2:] == ["payment.late_success", "payment.refunded"], moment.path
