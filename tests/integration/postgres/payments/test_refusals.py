"""Providers that refuse, break or stay silent over HTTP, as all servers over one database know of it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from payagg_testing.provider_faults import Fault

from payagg.application.schemas.checkout import ProcessPayment
from payagg.domain.errors import Refusal
from payagg.domain.gateway import UnavailableReason
from payagg.domain.health import Health
from payagg.domain.values import Environment
from tests.support.provider_rigs import PUBLIC_KEYS, SECRET_KEYS, SIGNING
from tests.support.provider_world import World, world_on


@pytest.fixture
async def impatient(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives up on silence soon, so that a test need not wait long."""
    async with world_on(database_url, tmp_path, deadline=1.0) as world:
        yield world


@pytest.mark.rule("checkout.6")
async def test_faults_at_once_pause_a_provider_for_all_servers_and_one_probe_ends_it(world: World) -> None:
    book, other = world.fakes.paystack.book, world.other_process()
    book.faults.extend([Fault.SERVER_ERROR] * 20)
    payments = [await world.payment() for _ in range(20)]
    await asyncio.gather(*(world.process(payment) for payment in payments), return_exceptions=True)
    book.faults.clear()
    book.calls.clear()
    for server in (world.services, other):
        listed = {o.slug: o for o in (await server.checkout.options(payments[0].reference)).gateways}
        assert not listed["provider_a"].available
        assert listed["provider_a"].unavailable_reason is UnavailableReason.UNHEALTHY
        with pytest.raises(Refusal):
            await server.checkout.process(payments[0].reference, ProcessPayment(gateway_slug="provider_a"))
    assert book.calls == []
    live = await world.payment(environment=Environment.LIVE)
    assert (await world.process(live)).gateway == "provider_a"  # the other environment is another matter

    world.clock.move(Health.FIRST_PAUSE)  # the first one, however many faults there were
    book.calls.clear()
    book.faults.append(Fault.SLOW)
    servers, fresh = (world.services, other), [await world.payment() for _ in range(10)]
    command = ProcessPayment(gateway_slug="provider_a")
    answers = await asyncio.gather(
        *(servers[n % 2].checkout.process(one.reference, command) for n, one in enumerate(fresh)),
        return_exceptions=True,
    )
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert book.count("initialize") == 1
    assert (await world.process(await world.payment())).gateway == "provider_a"  # the probe's success closed it


async def test_trap_20_no_credential_reaches_a_log_or_an_error(
    impatient: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    world = impatient
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    faults = (None, Fault.SERVER_ERROR, Fault.RESET, Fault.GARBAGE, Fault.REFUSED_KEY, Fault.LOST_REPLY)
    for slug in ("provider_a", "provider_b"):
        for fault in faults:
            payment = await world.payment(customer_email="canary@example.com", customer_name="Canary Canaryson")
            if fault is not None:
                world.fakes.paystack.book.faults.append(fault)
                world.fakes.payaza.book.faults.append(fault)
            try:
                await world.process(payment, slug)
                await world.services.verification.verify(payment.reference)
            except Refusal as refused:
                errors.append(f"{refused!r} {refused.message} {refused.__cause__!r} {refused.__context__!r}")
    told = (caplog.text + "".join(errors) + "".join(capsys.readouterr())).lower()
    for secret in (*SECRET_KEYS.values(), *PUBLIC_KEYS.values(), *SIGNING.values(), "canary@example.com", "canaryson"):
        assert secret.lower() not in told
