"""A gateway that is deleted from under its payments: what was handed to it settles through its own credentials."""

from datetime import datetime, timedelta

import pytest
from payagg_testing.builders import AN_ADMIN
from payagg_testing.provider_faults import Fault

from payagg.adapters.postgres.doctor import examine
from payagg.application.reports.explain import timeline
from payagg.application.schemas.gateways import CreateGateway, UpdateCredentials
from payagg.domain.anomaly import AnomalyKind
from payagg.domain.attempt import RETRY_LAST_EVERY
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.gateway import SETTLING_MAX, Gateway
from payagg.domain.payment import Payment, Status
from tests.support.provider_rigs import credentials_a
from tests.support.provider_world import World

pytestmark = [pytest.mark.usefixtures("providers_send_no_events")]
RULE = "a PENDING payment's gateway can be asked: it has credentials, deleted or not"


async def delete_provider_a(world: World) -> str:
    """Disables, drains and deletes the living gateway of provider_a; its id."""
    gateways = world.services.gateways
    (gateway_id,) = [gateway.id for gateway in await gateways.list_gateways() if gateway.slug == "provider_a"]
    await gateways.disable(gateway_id, by=AN_ADMIN)
    world.clock.move(gateways.drain_window)
    await gateways.delete(gateway_id, by=AN_ADMIN)
    return gateway_id


async def create_again(world: World) -> str:
    gateways = world.services.gateways
    made = await gateways.create(CreateGateway(slug="provider_a", name="Provider A"), by=AN_ADMIN)
    await gateways.set_credentials(made.id, UpdateCredentials(credentials=credentials_a(world.fakes)), by=AN_ADMIN)
    await gateways.enable(made.id, by=AN_ADMIN)
    return made.id


async def stored(world: World, gateway_id: str) -> Gateway:
    async with world.store.begin() as tx:
        gateway = await tx.gateways.get_any(gateway_id)
    assert gateway is not None
    return gateway


async def verified(world: World, payment: Payment) -> Status:
    return (await world.services.verification.verify(payment.reference)).status


@pytest.mark.rule("gateways.16", "gateways.17")
async def test_a_deleted_gateway_takes_no_new_charge_and_what_it_was_handed_settles(world: World) -> None:
    paid, asked = await world.handed_over(), await world.handed_over()
    fresh = await world.payment(ttl=timedelta(hours=3))
    await delete_provider_a(world)
    assert await world.services.gateway_settling.wipe() == 0
    slugs = [option.slug for option in (await world.services.checkout.options(fresh.reference)).gateways]
    assert slugs == ["provider_b", "sandbox"]
    with pytest.raises(Refusal) as refused:
        await world.process(fresh)
    assert refused.value.code is ErrorCode.GATEWAY_NOT_AVAILABLE
    assert "provider_a" not in [gateway.slug for gateway in await world.services.gateways.list_gateways()]
    assert (await world.process(paid)).gateway == "provider_a"  # the hand-off that the payer was given stands
    assert world.fakes.paystack.book.count("initialize") == 2
    for payment in (paid, asked):
        world.fakes.paystack.pay(payment.reference)
    assert await verified(world, paid) is Status.SUCCESS
    await world.services.reconciler.run_once()
    assert (await world.read(asked)).status is Status.SUCCESS


@pytest.mark.rule("gateways.18")
async def test_a_deleted_gateway_and_its_successor_use_their_own_credentials(world: World) -> None:
    old, unknown = await world.handed_over(), await world.payment(ttl=timedelta(hours=3))
    world.fakes.paystack.book.faults.append(Fault.RESET)
    with pytest.raises(Refusal):
        await world.process(unknown)
    deleted = await delete_provider_a(world)
    created = await create_again(world)
    # Nobody listens where the new one's credentials lead: whoever is asked shows whose credentials were used.
    await world.set_credentials("provider_a", {**credentials_a(world.fakes), "sandboxBaseUrl": "http://127.0.0.1:9"})
    for payment in (old, unknown):
        world.fakes.paystack.pay(payment.reference)
    with pytest.raises(Refusal):
        await world.process(await world.payment())
    assert await verified(world, old) is Status.SUCCESS
    with pytest.raises(Refusal) as refused:
        await world.process(unknown)
    assert refused.value.code is ErrorCode.PAYMENT_ALREADY_PROCESSED
    assert (await world.read(unknown)).status is Status.SUCCESS
    await world.set_credentials("provider_a", credentials_a(world.fakes))
    new = await world.handed_over()
    assert [attempt.gateway_id for attempt in await world.attempts(old)] == [deleted]
    assert [attempt.gateway_id for attempt in await world.attempts(new)] == [created]
    world.fakes.paystack.pay(new.reference)
    assert await verified(world, new) is Status.SUCCESS


@pytest.mark.rule("gateways.19")
async def test_secrets_go_when_the_last_open_attempt_ends(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.abandon(payment.reference)
    deleted = await delete_provider_a(world)
    told = f"gateway     {deleted} (provider_a) deleted; its credentials"
    assert any(f"{told} stay for settling" in line for line in await timeline(world.store, payment.reference))
    due: datetime | None = world.clock.now()
    while due is not None:
        assert await world.services.gateway_settling.wipe() == 0
        assert (await stored(world, deleted)).has_credentials
        world.clock.set(max(due, world.clock.now()))
        await world.services.reconciler.run_once()
        due = (await world.attempts(payment))[-1].next_ask_at
    assert (await world.read(payment)).status is Status.FAILED
    assert await world.services.gateway_settling.wipe() == 1
    assert not (await stored(world, deleted)).has_credentials
    assert any(f"{told} are wiped" in line for line in await timeline(world.store, payment.reference))
    assert "gateway secrets wiped" in capsys.readouterr().out


@pytest.mark.rule("gateways.19")
async def test_secrets_go_after_72_hours_and_the_doctor_names_what_cannot_be_asked(world: World) -> None:
    payment = await world.handed_over()
    world.fakes.paystack.book.charges[payment.reference].status = "ongoing"
    deleted = await delete_provider_a(world)
    world.clock.move(SETTLING_MAX - timedelta(seconds=1))
    assert await world.services.gateway_settling.wipe() == 0
    assert {finding.rule: finding.breaches for finding in examine(world.url).rules}[RULE] == []
    world.clock.move(timedelta(seconds=1))
    assert await world.services.gateway_settling.wipe() == 1
    assert not (await stored(world, deleted)).has_credentials
    named = {finding.rule: finding for finding in examine(world.url).rules}[RULE]
    assert (named.breaches, "end it by hand" in named.remedy) == ([payment.reference], True)
    with pytest.raises(Refusal) as refused:
        await verified(world, payment)
    assert refused.value.code is ErrorCode.GATEWAY_NOT_AVAILABLE
    # The new gateway's account may be another: what it does not know of proves nothing.
    await create_again(world)
    world.clock.move(timedelta(hours=24))
    for kinds in ([], [AnomalyKind.NO_EVIDENCE]):  # the last check, made for the first time, is made once more
        await world.services.reconciler.run_once()
        assert (await world.read(payment)).status is Status.PENDING
        assert [a.kind for a in await world.anomalies(payment)] == kinds
        world.clock.move(RETRY_LAST_EVERY)
