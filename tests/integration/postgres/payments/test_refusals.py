"""Providers that refuse, break or stay silent over HTTP, and what is told of it."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from payagg_testing.provider_faults import Fault

from payagg.domain.errors import Refusal
from tests.support.provider_rigs import PUBLIC_KEYS, SECRET_KEYS, SIGNING
from tests.support.provider_world import World, world_on


@pytest.fixture
async def impatient(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives up on silence soon, so that a test need not wait long."""
    async with world_on(database_url, tmp_path, deadline=0.2) as world:
        yield world


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
