"""Gateways that one cell sets and the others have: every move, sealed secrets, logos, and a version that says so."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from payagg_testing.clocks import ManualClock
from payagg_testing.memory import MemoryStore

from payagg.adapters.logos import ObjectLogos
from payagg.adapters.security import AesVault
from payagg.application.accounts.audit import AuditTrail
from payagg.application.gateways.seed import seed_gateways
from payagg.application.schemas.gateways import CreateGateway, UpdateCredentials, UpdateGateway
from payagg.domain.audit import Actor, ActorRealm, AuditFilter
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.entrypoints.bootstrap import Services
from payagg.extensions.cells.gateway_replication import GatewayReplication
from tests.contracts.database import autocommit
from tests.support.assembly import named, services_over
from tests.support.images import an_image

BY = Actor(ActorRealm.CLI, "test")
OTHER_KEYS = (("k2", bytes(range(32, 64))),)


@dataclass
class Wire:
    """What the home cell says, as it comes over the wire."""

    home: Services
    copies: GatewayReplication
    logos_fetched: list[str] = field(default_factory=list)

    async def home_gateways(self) -> list[Gateway]:
        return msgspec.json.decode(msgspec.json.encode(await self.copies.gateways_to_send()), type=list[Gateway])

    async def home_logo(self, gateway_id: str) -> bytes:
        self.logos_fetched.append(gateway_id)
        return (await self.home.gateways.logo(gateway_id)).content


@dataclass
class TwoCells:
    clock: ManualClock
    home: Services
    other: Services
    at_home: GatewayReplication
    copies: GatewayReplication
    wire: Wire

    async def is_same(self) -> bool:
        return await self.at_home.version() == await self.copies.version()

    async def made(self, slug: str = "acme") -> str:
        return (await self.home.gateways.create(CreateGateway(slug=slug, name="Acme"), by=BY)).id

    async def mine(self, gateway_id: str) -> Gateway:
        """The other cell's copy, deleted or not."""
        found = await autocommit(self.other.store).gateways.get_any(gateway_id)
        assert found is not None
        return found

    async def set_credentials(self, gateway_id: str, **credentials: str) -> None:
        await self.home.gateways.set_credentials(gateway_id, UpdateCredentials(credentials=credentials), by=BY)


def copies_of(services: Services, others: Any, vault: AesVault | None = None) -> GatewayReplication:
    return GatewayReplication(
        services.store, services.clock, services.payments.entropy, vault or services.vault, services.logos, others
    )


@pytest.fixture
async def world() -> TwoCells:
    clock = ManualClock()
    home, other = (services_over(MemoryStore(), clock=clock, logos=ObjectLogos("memory:///")) for _ in range(2))
    at_home = copies_of(home, None)
    wire = Wire(home, at_home)
    for services in (home, other):
        await seed_gateways(services.gateways, "builtin", named("provider_a", "provider_b"))
    return TwoCells(clock, home, other, at_home, copies_of(other, wire), wire)


async def test_a_gateway_with_its_credentials_reaches_the_other_cell(world: TwoCells) -> None:
    assert await world.is_same()
    assert await world.copies.pull() == 0
    gateway = await world.made()
    await world.set_credentials(gateway, key="one")
    await world.home.gateways.enable(gateway, by=BY)
    assert not await world.is_same()
    assert await world.copies.pull() == 1
    assert await world.is_same()
    assert await world.copies.pull() == 0
    mine = await world.mine(gateway)
    assert mine.is_active
    assert world.other.payment_options.gateway_credentials.current(mine) == {"key": "one"}
    told = await AuditTrail(world.other.store).page(AuditFilter(object_id=gateway), None, 10)
    assert {entry.action for entry in told.entries} == {"gateway.create"}
    assert {entry.subject for entry in told.entries} == {"home cell"}
    await world.home.gateways.update("gw_builtin", UpdateGateway(display_order=7), by=BY)
    await world.copies.pull()
    built_in = await world.mine("gw_builtin")
    assert (built_in.display_order, built_in.status) == (7, GatewayStatus.ACTIVE)


async def test_every_state_is_reached_by_moves_that_the_machine_knows(world: TwoCells) -> None:
    gateway = await world.made()
    gateways = world.home.gateways
    for change, status in ((gateways.enable, GatewayStatus.ACTIVE), (gateways.disable, GatewayStatus.DRAINING)):
        await change(gateway, by=BY)
        await world.copies.pull()
        assert (await world.mine(gateway)).status is status
    # The drain ends in every cell at its instant, whoever makes that durable first.
    world.clock.move(timedelta(hours=1))
    for cell in (world.home, world.other):
        assert await world.is_same()
        await cell.gateways.end_drains()
    assert await world.is_same()
    # Drained and deleted while the other cell could not ask.
    await gateways.enable(gateway, by=BY)
    await world.copies.pull()
    await gateways.disable(gateway, by=BY)
    world.clock.move(timedelta(hours=1))
    await gateways.end_drains()
    await gateways.delete(gateway, by=BY)
    again = await world.made()
    await world.copies.pull()
    ended, anew = await world.mine(gateway), await world.mine(again)
    assert (ended.status, anew.status) == (GatewayStatus.DELETED, GatewayStatus.DISABLED)
    assert await world.is_same()


async def test_a_deleted_gateway_keeps_its_secrets_where_they_settle(world: TwoCells) -> None:
    gateway = await world.made()
    await world.set_credentials(gateway, key="one")
    await world.copies.pull()
    await world.home.gateways.delete(gateway, by=BY)
    assert all(one.credentials is None for one in await world.at_home.gateways_to_send() if one.id == gateway)
    await world.copies.pull()
    mine = await world.mine(gateway)
    assert mine.status is GatewayStatus.DELETED
    assert mine.has_credentials
    assert await world.is_same()


async def test_credentials_that_do_not_open_change_nothing(world: TwoCells) -> None:
    gateway = await world.made()
    await world.copies.pull()
    await world.set_credentials(gateway, key="one")
    await world.home.gateways.update(gateway, UpdateGateway(name="Other"), by=BY)
    await world.home.gateways.update("gw_provider_b", UpdateGateway(name="Bee"), by=BY)
    locked = copies_of(world.other, world.wire, AesVault(OTHER_KEYS))
    assert await locked.pull() == 1
    mine, bee = await world.mine(gateway), await world.mine("gw_provider_b")
    assert (mine.name, mine.credentials, bee.name) == ("Acme", None, "Bee")
    assert not await world.is_same()


async def test_a_logo_is_there_before_the_row_names_it(world: TwoCells) -> None:
    logo = an_image()
    await world.home.gateways.upload_logo("gw_provider_a", logo, by=BY)
    await world.copies.pull()
    assert (await world.other.gateways.logo("gw_provider_a")).content == logo
    assert world.wire.logos_fetched == ["gw_provider_a"]
    await world.copies.pull()
    assert world.wire.logos_fetched == ["gw_provider_a"]
