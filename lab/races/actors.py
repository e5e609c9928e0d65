"""Who may act on a payment at one moment: each with its calls, once to each server, and the rules that they follow."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from payagg_testing.builders import AN_ADMIN, a_business

from lab.races import model
from lab.races.grid import BUSINESS, Answered, Call, Grid, said
from lab.races.model import FAILED, PENDING, SUCCESS, A, B, Program, RaceState
from payagg.adapters.providers import PROVIDERS
from payagg.application.payments.expiry import sweep_expired
from payagg.application.schemas.checkout import ProcessPayment
from payagg.application.schemas.gateways import OrderedGateway, ReorderGateways, UpdateBusinessGateway
from payagg.application.schemas.payments import InitiatePayment
from payagg.domain.payment import Payment, Status
from payagg.entrypoints.bootstrap import Services
from payagg.entrypoints.dev.fake_providers import FakeCharge
from tests.support.provider_rigs import SECRET_KEYS

ROUTE = PROVIDERS[0].routes[0]
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
    call: Call
    program: Program
    of: Callable[[Any], str] = lambda _: model.DONE


Calls = Callable[[RaceRound, random.Random], list[RaceCall]]


def at_each(
    act: Callable[[RaceRound, Services], Call],
    program: Program,
    of: Callable[[Any], str] = lambda _: model.DONE,
) -> Calls:
    """The same call, once to each server."""
    return lambda own, _: [RaceCall(act(own, one), program, of) for one in own.grid.servers]


def process(slug: str) -> Calls:
    command = ProcessPayment(gateway_slug=slug)
    return at_each(
        lambda own, one: partial(one.checkout.process, own.payment.reference, command),
        model.process(slug),
        lambda answer: answer.gateway,
    )


def simulate(*outcomes: Status) -> Calls:
    def calls(own: RaceRound, chance: random.Random) -> list[RaceCall]:
        outcome, server = chance.choice(outcomes), chance.choice(own.grid.servers)
        act = partial(server.payments.simulate, own.payment.reference, outcome.value, BUSINESS, by=AN_ADMIN)
        return [RaceCall(act, model.alone(model.simulate, outcome), lambda a: a.status.value)]

    return calls


def event(outcome: Status) -> Calls:
    """provider_a's signed word, which may overtake the answer to our call."""

    def receive(own: RaceRound, one: Services) -> Call:
        made, word = own.payment, outcome.value.lower()
        charge = FakeCharge(made.reference, made.amount, made.currency, "test", 1, word, SECRET_KEYS["test"])
        sent = own.grid.world.fakes.paystack.event(charge, f"charge.{word}")
        return partial(one.provider_events.receive, ROUTE, sent.body, sent.headers)

    return at_each(receive, model.event(outcome))


def moment(
    when: Callable[[RaceRound], datetime],
    sweep: Callable[[Services], Awaitable[int]],
    program: Callable[[bool], Program],
    of: Callable[[Any], str],
) -> Calls:
    """For everybody at its instant, and durable once a server has swept."""

    def calls(own: RaceRound, _: random.Random) -> list[RaceCall]:
        async def reach(server: Services | None) -> int:
            own.grid.clock.reach(when(own))
            return 0 if server is None else await sweep(server)

        return [RaceCall(partial(reach, one), program(one is not None), of) for one in (None, *own.grid.servers)]

    return calls


def initiate_again(own: RaceRound, _: random.Random) -> list[RaceCall]:
    command = InitiatePayment(amount=own.payment.amount, idempotency_key=own.key)

    def told(answer: Any) -> str:
        is_it = not answer.created and answer.payment.reference == own.payment.reference
        return "the original" if is_it else "another payment"

    acts = [partial(one.payments.initiate, command, a_business(), own.payment.environment) for one in own.grid.servers]
    return [RaceCall(act, model.alone(model.initiate_again), told) for act in acts]


def changed(server: Services, slug: str, command: UpdateBusinessGateway) -> Call:
    return partial(server.checkout_settings.update, BUSINESS, f"gw_{slug}", command, by=AN_ADMIN)


def change_default(own: RaceRound, _: random.Random) -> list[RaceCall]:
    """Each server is told of another gateway."""
    command = UpdateBusinessGateway(is_default=True)
    told = zip(own.grid.servers, (A, B), strict=True)
    return [RaceCall(changed(one, slug, command), model.alone(model.make_default, slug)) for one, slug in told]


def reorder(own: RaceRound, _: random.Random) -> list[RaceCall]:
    """Each server is told of another order."""
    calls = []
    for one, order in zip(own.grid.servers, ((1, 2), (2, 1)), strict=True):
        placed = zip((A, B), order, strict=True)
        items = [OrderedGateway(gateway_id=f"gw_{slug}", display_order=place) for slug, place in placed]
        act = partial(one.checkout_settings.reorder, BUSINESS, ReorderGateways(order=items), by=AN_ADMIN)
        calls.append(RaceCall(act, model.alone(model.reorder, order)))
    return calls


ACTORS: dict[str, Calls] = {
    "process": process(A),
    "process elsewhere": process(B),
    "the hour ends": moment(
        lambda own: own.payment.expires_at,
        lambda one: sweep_expired(one.settlement),
        model.hour_ends,
        lambda _: model.DONE,
    ),
    "simulate": simulate(SUCCESS, FAILED, Status.REVERSED),
    "event of success": event(SUCCESS),
    "event of failure": event(FAILED),
    "verify": at_each(
        lambda own, one: partial(one.verification.verify, own.payment.reference),
        model.verify(),
        lambda answer: answer.status.value,
    ),
    "gateway off": at_each(
        lambda _, one: partial(one.gateways.disable, f"gw_{A}", by=AN_ADMIN), model.alone(model.disable)
    ),
    "gateway on": at_each(
        lambda _, one: partial(one.gateways.enable, f"gw_{A}", by=AN_ADMIN), model.alone(model.enable)
    ),
    "the drain ends": moment(lambda own: own.drain_ends, lambda one: one.gateways.end_drains(), model.drain_ends, str),
    "initiate again": initiate_again,
    "opt out": at_each(
        lambda _, one: changed(one, A, UpdateBusinessGateway(is_enabled=False)), model.alone(model.opt_out)
    ),
    "default": change_default,
    "reorder": reorder,
}
SIMULATED_SUCCESS: dict[str, Calls] = {"simulated success": simulate(SUCCESS)}
TRUTHS = {"event of success": SUCCESS, "event of failure": FAILED}


def starts(names: Sequence[str]) -> list[RaceState]:
    """A fresh payment, and one handed to provider_a of which the provider knows more than we do."""
    truths: list[Status | None] = [TRUTHS[name] for name in names if name in TRUTHS] or [SUCCESS, FAILED, None]
    handed = RaceState(status=PENDING, history=(PENDING,), claim=A, is_handed=True)
    return [RaceState(), *(replace(handed, truth=truth) for truth in truths)]


async def begun(grid: Grid, names: Sequence[str], key: str, start: RaceState) -> RaceRound:
    payment = await grid.world.payment(idempotency_key=key)
    if start.is_handed:
        await grid.world.process(payment, A)
        if start.truth is SUCCESS:
            grid.world.fakes.paystack.pay(payment.reference)
        elif start.truth is FAILED:
            grid.world.fakes.paystack.decline(payment.reference)
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
    """One race between these, once to each server."""
    fresh, *handed = starts(names)
    own = await begun(grid, names, key, fresh if chance.random() < 0.5 else chance.choice(handed))
    calls = [call for name in names for call in (ACTORS | SIMULATED_SUCCESS)[name](own, chance)]
    await judge(own, calls, await grid.timed(chance, *(one.call for one in calls)))


async def judge(own: RaceRound, calls: Sequence[RaceCall], answers: Sequence[Answered]) -> None:
    """Some order of the calls' steps must explain it all; the gateway is then on again, for everybody."""
    grid = own.grid
    told = tuple(said(one.answer, call.of) for one, call in zip(answers, calls, strict=True))
    before = [frozenset(number for number, other in enumerate(answers) if other.ended < one.began) for one in answers]
    await sweep_expired(grid.servers[0].settlement)  # sweeps pass by what is locked at their moment
    await grid.servers[0].gateways.end_drains()
    found = told, await grid.stored(own.payment)
    legal = model.outcomes(own.start, [one.program for one in calls], before)
    assert found in legal, f"from {own.start}\nthere came {found}\nand never {legal}"
    if (await grid.gateway()).status is not model.ACTIVE:
        await grid.servers[0].gateways.enable(f"gw_{A}", by=AN_ADMIN)
    await changed(grid.servers[0], A, UpdateBusinessGateway(is_enabled=True))()
