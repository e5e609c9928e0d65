"""The gateways that an installation has from its start, on the memory store."""

from pathlib import Path

import pytest
from payagg_testing.builders import AN_ADMIN

from payagg.adapters.images import PillowImages
from payagg.adapters.logos import ObjectLogos
from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.registry import providers_of
from payagg.application.gateways.seed import seed_gateways
from payagg.application.schemas.gateways import CreateGateway
from payagg.domain.errors import ErrorCode
from payagg.entrypoints.settings import Settings
from tests.support.assembly import named
from tests.support.gateway_world import GatewayWorld
from tests.support.images import an_image
from tests.support.refusals import refused_with

LOOKS = {spec.slug: spec.branding for spec in PROVIDERS}
IN_USE = (ErrorCode.GATEWAY_SLUG_EXISTS, "slug")


@pytest.mark.rule("gateways.14", "gateways.15")
async def test_a_providers_slug_is_in_use_until_its_gateway_is_deleted_and_then_free() -> None:
    slugs = ["provider_a", "pay-b"]
    specs = Settings().having(provider_b_slug="pay-b").providers
    world = GatewayWorld(providers=providers_of(specs, allow_loopback=False))
    await seed_gateways(world.gateways, "builtin", named(*slugs))
    statuses = {gateway.slug: (gateway.status, gateway.is_built_in) for gateway in await world.gateways.list_gateways()}
    off = ("DISABLED", False)
    assert statuses == {"builtin": ("ACTIVE", True), "provider_a": off, "pay-b": off}
    for slug in slugs:
        assert await refused_with(world.gateways.create(CreateGateway(slug=slug, name="Acme"), by=AN_ADMIN)) == IN_USE
        await world.gateways.delete(f"gw_{slug}", by=AN_ADMIN)
    await seed_gateways(world.gateways, "builtin", named(*slugs))
    assert [gateway.slug for gateway in await world.gateways.list_gateways()] == ["builtin"], "seeding brings none back"
    for slug in slugs:
        again = await world.gateways.create(CreateGateway(slug=slug, name="Acme"), by=AN_ADMIN)
        assert (again.slug, again.status, again.id != f"gw_{slug}") == (slug, "DISABLED", True)
        assert await refused_with(world.gateways.create(CreateGateway(slug=slug, name="Acme"), by=AN_ADMIN)) == IN_USE
        await world.gateways.enable(again.id, by=AN_ADMIN)
    before = await world.gateways.list_gateways()
    await seed_gateways(world.gateways, "builtin", named(*slugs))
    assert await world.gateways.list_gateways() == before


async def test_a_seeded_gateway_has_name_words_and_logo_until_they_are_changed(world: GatewayWorld) -> None:
    await seed_gateways(world.gateways, "builtin", LOOKS)
    for slug, look in LOOKS.items():
        gateway = await world.gateways.detail(f"gw_{slug}")
        assert (gateway.name, gateway.description) == (look.name, look.description)
        drawn = (await world.gateways.logo(gateway.id)).content
        assert (await PillowImages().kind(drawn), len(drawn) < 1_024) == ("png", True)
    await world.gateways.upload_logo("gw_provider_a", an_image(), by=AN_ADMIN)
    await seed_gateways(world.gateways, "builtin", LOOKS)
    assert (await world.gateways.logo("gw_provider_a")).content == an_image()


async def test_a_logo_store_that_is_away_costs_a_seeded_gateway_its_logo_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    world = GatewayWorld(logos=ObjectLogos(tmp_path / "file" / "logos"))
    await seed_gateways(world.gateways, "builtin", {"provider_a": LOOKS["provider_a"]})
    gateway = await world.gateways.detail("gw_provider_a")
    assert (gateway.name, gateway.logo_url) == ("Paystack", None)
