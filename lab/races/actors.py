"""Who may act on a payment at one moment: each with its calls, once to each server, and the rules that they follow."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from payagg_testing.builders import AN_ADMIN, a_business

from lab.races import model
from lab.races.grid import BUSINESS, Call, Grid, said
from lab.races.model import FAILED, PENDING, SUCCESS, A, B, Program, RaceState
from payagg.application.provider_events import provider_event_routes
from payagg.application.schemas.gateways import OrderedGateway, ReorderGateways, UpdateBusinessGateway
from payagg.application.schemas.payments import InitiatePayment, ProcessPayment
from payagg.domain.payment import Payment, Status
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import FakeCharge
from tests.support.provider_rigs import SECRET_KEYS

ROUTE = provider_event_routes("provider_a", "provider_b")[0]
SHORTLY = timedelta(milliseconds=1)
BEFORE_THE_DRAIN = timedelta(minutes=29)  # a drain of half an hour then ends a minute before the payment's hour


@dataclass(frozen=True)
class RaceRound:
    """One payment in one grid."""

    grid: Grid
    payment: Payment
    key: str
    drain_ends: Any
    start: RaceState


@dataclass(frozen=True)
class RaceCall:
    """`shares`: the answer may be that of a call which another caller had begun before."""

    call: Call
    program: Program
    of: Callable[[Any], str] = lambda _: model.DONE
    shares: bool = False


Calls = Callable[[RaceRound, random.Random], list[RaceCall]]


def process(slug: str) -> Calls:
    def calls(own: RaceRound, _: random.Random) -> list[RaceCall]:
        command = ProcessPayment(gateway_slug=slug)
        return [
            RaceCall(
                partial(one.checkout.process, own.payment.reference, command), model.process(slug), lambda a: a.gateway
            )
            for one in own.grid.servers
        ]

    return calls


def verify(own: RaceRound, _: random.Random) -> list[RaceCall]:
    reference = own.payment.reference
    return [
        RaceCall(partial(one.verification.verify, reference), model.verify(), lambda a: a.status.value, shares=True)
        for one in own.grid.servers
    ]


def simulate(*outcomes: Status) -> Calls:
    def calls(own: RaceRound, chance: random.Random) -> list[RaceCall]:
        outcome, server = chance.choice(outcomes), chance.choice(own.grid.servers)
        act = partial(server.payments.simulate, own.payment.reference, outcome.value, BUSINESS, by=AN_ADMIN)
        return [RaceCall(act, model.simulate(outcome), lambda a: a.status.value)]

    return calls


def event(outcome: Status) -> Calls:
    """provider_a's signed word, which may overtake the answer to our call."""

    def calls(own: RaceRound, _: random.Random) -> list[RaceCall]:
        charge = FakeCharge(
            reference=own.payment.reference,
            amount=own.payment.amount,
            currency=own.payment.currency,
            mode="test",
            id=1,
            status=outcome.value.lower(),
            key=SECRET_KEYS["test"],
        )
        sent = own.grid.world.fakes.paystack.event(charge, f"charge.{charge.status}")
        return [
            RaceCall(partial(one.provider_events.receive, ROUTE, sent.body, sent.headers), model.event(outcome))
            for one in own.grid.servers
        ]

    return calls


def hour_ends(own: RaceRound, _: random.Random) -> list[RaceCall]:
    """For everybody at its instant, and durable once a server has swept."""

    async def reach() -> None:
        own.grid.clock.reach(own.payment.expires_at)

    async def sweep(server: Services) -> None:
        await reach()
        await server.settlement.expire_due()

    swept = [RaceCall(partial(sweep, one), model.hour_ends(is_swept=True)) for one in own.grid.servers]
    return [RaceCall(reach, model.hour_ends(is_swept=False)), *swept]


def drain_ends(own: RaceRound, _: random.Random) -> list[RaceCall]:
    """As the hour."""

    async def reach() -> int:
        own.grid.clock.reach(own.drain_ends)
        return 0

    async def sweep(server: Services) -> int:
        await reach()
        return await server.gateways.end_drains()

    swept = [RaceCall(partial(sweep, one), model.drain_ends(is_swept=True), str) for one in own.grid.servers]
    return [RaceCall(reach, model.drain_ends(is_swept=False), str), *swept]


def disable(own: RaceRound, _: random.Random) -> list[RaceCall]:
    return [
        RaceCall(partial(one.gateways.disable, f"gw_{A}", by=AN_ADMIN), model.disable()) for one in own.grid.servers
    ]


def enable(own: RaceRound, _: random.Random) -> list[RaceCall]:
    return [RaceCall(partial(one.gateways.enable, f"gw_{A}", by=AN_ADMIN), model.enable()) for one in own.grid.servers]


def initiate_again(own: RaceRound, _: random.Random) -> list[RaceCall]:
    command = InitiatePayment(amount=own.payment.amount, idempotency_key=own.key)

    def told(answer: Any) -> str:
        is_it = not answer.created and answer.payment.reference == own.payment.reference
        return "the original" if is_it else "another payment"

    return [
        RaceCall(
            partial(one.payments.initiate, command, a_business(), own.payment.environment), model.initiate_again(), told
        )
        for one in own.grid.servers
    ]


def opt_out(own: RaceRound, _: random.Random) -> list[RaceCall]:
    command = UpdateBusinessGateway(is_enabled=False)
    return [
        RaceCall(partial(one.checkout_settings.update, BUSINESS, f"gw_{A}", command, by=AN_ADMIN), model.opt_out())
        for one in own.grid.servers
    ]


def change_default(own: RaceRound, _: random.Random) -> list[RaceCall]:
    """Each server is told of another gateway."""
    command = UpdateBusinessGateway(is_default=True)
    return [
        RaceCall(
            partial(one.checkout_settings.update, BUSINESS, f"gw_{slug}", command, by=AN_ADMIN),
            model.make_default(slug),
        )
        for one, slug in zip(own.grid.servers, (A, B), strict=True)
    ]


def reorder(own: RaceRound, _: random.Random) -> list[RaceCall]:
    """Each server is told of another order."""
    calls = []
    for one, order in zip(own.grid.servers, ((1, 2), (2, 1)), strict=True):
        items = [
            OrderedGateway(gateway_id=f"gw_{slug}", display_order=place)
            for slug, place in zip((A, B), order, strict=True)
        ]
        act = partial(one.checkout_settings.reorder, BUSINESS, ReorderGateways(order=items), by=AN_ADMIN)
        calls.append(RaceCall(act, model.reorder(order)))
    return calls


ACTORS: dict[str, Calls] = {
    "process": process(A),
    "process elsewhere": process(B),
    "the hour ends": hour_ends,
    "simulate": simulate(SUCCESS, FAILED, Status.REVERSED),
    "event of success": event(SUCCESS),
    "event of failure": event(FAILED),
    "verify": verify,
    "gateway off": disable,
    "gateway on": enable,
    "the drain ends": drain_ends,
    "initiate again": initiate_again,
    "opt out": opt_out,
    "default": change_default,
    "reorder": reorder,
}
OTHERS: dict[str, Calls] = {"simulated success": simulate(SUCCESS)}
TRUTHS = {"event of success": SUCCESS, "event of failure": FAILED}


async def begun(grid: Grid, names: tuple[str, ...], key: str, chance: random.Random) -> RaceRound:
    """A fresh payment, or one handed to provider_a of which the provider knows more than we do, as chance has it."""
    payment = await grid.world.payment(idempotency_key=key)
    start = RaceState()
    if chance.random() < 0.5:
        await grid.world.process(payment, A)
        truths: list[Status | None] = [TRUTHS[name] for name in names if name in TRUTHS] or [SUCCESS, FAILED, None]
        truth, fake = chance.choice(truths), grid.world.fakes.paystack
        if truth is SUCCESS:
            fake.pay(payment.reference)
        elif truth is FAILED:
            fake.decline(payment.reference)
        start = RaceState(status=PENDING, history=(PENDING,), claim=A, is_handed=True, truth=truth)
    chosen = await grid.chosen()
    start = replace(start, default=chosen.default, order=chosen.order)
    ends = None
    if {"the drain ends", "gateway on"} & set(names):
        grid.clock.reach(payment.created_at + BEFORE_THE_DRAIN)
        await grid.servers[0].gateways.disable(f"gw_{A}", by=AN_ADMIN)
        ends = (await grid.gateway()).drain_ends_at
        assert ends is not None
        grid.clock.reach(ends - SHORTLY)
        start = replace(start, gateway=model.DRAINING, began_draining=True)
    elif "the hour ends" in names:
        grid.clock.reach(payment.expires_at - SHORTLY)
    return RaceRound(grid, payment, key, ends, start)


async def raced(grid: Grid, names: tuple[str, ...], key: str, chance: random.Random) -> None:
    """One race between these, judged; the gateway is then on again, for everybody."""
    own = await begun(grid, names, key, chance)
    calls = [call for name in names for call in (ACTORS | OTHERS)[name](own, chance)]
    answers = await grid.timed(chance, *(one.call for one in calls))
    told = tuple(said(one.answer, call.of) for one, call in zip(answers, calls, strict=True))
    before = [
        frozenset(number for number, other in enumerate(answers) if other.ended < one.began and not call.shares)
        for one, call in zip(answers, calls, strict=True)
    ]
    await grid.servers[0].settlement.expire_due()  # sweeps pass by what is locked at their moment
    await grid.servers[0].gateways.end_drains()
    found = told, await grid.stored(own.payment)
    legal = model.outcomes(own.start, [one.program for one in calls], before)
    assert found in legal, f"from {own.start}\nthere came {found}\nand never {legal}"
    if (await grid.gateway()).status is not model.ACTIVE:
        await grid.servers[0].gateways.enable(f"gw_{A}", by=AN_ADMIN)
    await grid.servers[0].checkout_settings.update(
        BUSINESS, f"gw_{A}", UpdateBusinessGateway(is_enabled=True), by=AN_ADMIN
    )
