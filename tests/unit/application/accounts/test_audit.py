"""The audit trail, on the memory store: what each change leaves, what leaves nothing, and how it is read."""

from dataclasses import replace

import pytest
from msgspec import structs
from payagg_testing.builders import AN_ADMIN, NOW, a_business, an_actor, an_entry
from payagg_testing.clocks import ManualClock, SeededEntropy

from payagg.adapters.providers.registry import providers_of
from payagg.application.accounts.audit import AuditEntryView, AuditTrail, line_of
from payagg.application.gateways.seed import seed_gateways
from payagg.application.schemas.gateways import (
    CreateGateway,
    OrderedGateway,
    ReorderGateways,
    UpdateCredentials,
    UpdateGateway,
)
from payagg.application.schemas.webhooks import ChangeWebhook, CreateWebhook
from payagg.application.use_case import UseCase
from payagg.application.webhooks.endpoints import Webhooks
from payagg.domain.audit import Action, Actor, ActorRealm, AuditFilter, Changes, clock
from payagg.domain.gateway import OVERLAP, PROVES_FOR
from payagg.domain.values import Environment
from tests.support.assembly import named
from tests.support.audit_trail import entries, trail
from tests.support.gateway_world import DRAIN, GatewayWorld
from tests.support.refusals import refused_with

MERCHANT = an_actor(ActorRealm.MERCHANT, "bo")


async def test_a_gateway_from_creation_to_deletion_leaves_an_entry_for_each_step(world: GatewayWorld) -> None:
    made = (await world.gateways.create(CreateGateway(slug="acme", name="Acme Pay"), by=AN_ADMIN)).id
    for change in (UpdateGateway(name="Acme", display_order=0), UpdateGateway(name="Acme"), UpdateGateway()):
        await world.gateways.update(made, change, by=AN_ADMIN)
    for credentials in ({"a": "1", "b": "2", "d": "4"}, {"b": "2", "c": "3", "d": "5"}):
        await world.gateways.set_credentials(made, UpdateCredentials(credentials=credentials), by=AN_ADMIN)
    await world.gateways.enable(made, by=AN_ADMIN)
    await world.gateways.disable(made, by=AN_ADMIN)
    world.clock.move(DRAIN)
    await world.gateways.delete(made, by=AN_ADMIN)
    ends, first = "2025-01-31T12:30:00Z", {"slug": "acme", "name": "Acme Pay", "displayOrder": 0, "status": "DISABLED"}
    created = {name: (None, value) for name, value in first.items()}
    assert trail(world.store, object_id=made) == [
        ("gateway.create", made, created),
        ("gateway.update", made, {"name": ("Acme Pay", "Acme")}),
        ("gateway.set_credentials", made, {"credentialsSet": (None, ["a", "b", "d"])}),
        ("gateway.set_credentials", made, {"credentialsSet": (None, ["c", "d"]), "credentialsRemoved": (["a"], None)}),
        ("gateway.enable", made, {"status": ("DISABLED", "ACTIVE")}),
        ("gateway.disable", made, {"status": ("ACTIVE", "DRAINING"), "drainEndsAt": (None, ends)}),
        ("gateway.end_drain", made, {"status": ("DRAINING", "DISABLED"), "drainEndsAt": (ends, None)}),
        ("gateway.delete", made, {"status": ("DISABLED", "DELETED")}),
    ]
    by = {(entry.action, entry.realm, entry.subject) for entry in await entries(world.store)}
    assert ("gateway.end_drain", ActorRealm.CLOCK, "drains") in by
    assert {subject for action, _, subject in by if action != "gateway.end_drain"} == {AN_ADMIN.subject}


@pytest.mark.rule("audit.2")
async def test_the_end_of_secrets_is_told_whoever_brings_it() -> None:
    world = GatewayWorld(providers=providers_of(allow_loopback=False))
    gateway = (await world.seeded("provider_a"))["provider_a"]

    async def rotate(*secrets: str) -> str:
        """When the overlap of the last one ends."""
        for secret in secrets:
            command = UpdateCredentials(credentials={"liveSecretKey": secret})
            await world.gateways.set_credentials(gateway, command, by=AN_ADMIN)
        return f"{world.clock.now() + OVERLAP:%Y-%m-%dT%H:%M:%SZ}"

    ended = await rotate("sk_live_1", "sk_live_2")
    for _ in range(2):
        await world.gateways.end_overlap(gateway, by=AN_ADMIN)
    over = await rotate("sk_live_3")
    world.clock.move(OVERLAP)
    for _ in range(2):
        await world.settling.wipe()
    wiped = await rotate("sk_live_4")
    await world.gateways.disable(gateway, by=AN_ADMIN)
    world.clock.move(DRAIN)
    await world.gateways.delete(gateway, by=AN_ADMIN)
    proves = f"{world.clock.now() + PROVES_FOR:%Y-%m-%dT%H:%M:%SZ}"
    for _ in range(2):
        await world.settling.wipe()
    end, wipe = "gateway.end_overlap", "gateway.wipe_secrets"
    assert trail(world.store, action=end) == [(end, gateway, {"replacedSecretsUntil": (ended, None)})]
    assert trail(world.store, subject="settling") == [
        (wipe, gateway, {"replacedSecretsUntil": (over, None)}),
        (wipe, gateway, {"hasCredentials": (True, False), "replacedSecretsUntil": (wiped, proves)}),
    ]
    assert trail(world.store, action=wipe) == trail(world.store, subject="settling")
    assert "sk_live" not in repr(await entries(world.store))


async def test_credentials_that_do_not_open_are_replaced_and_a_refusal_leaves_nothing(world: GatewayWorld) -> None:
    acme = (await world.seeded("acme"))["acme"]
    assert [told[1] for told in trail(world.store, subject="seed")] == ["gw_builtin", "gw_acme"]
    closed = replace(await world.stored(acme), credentials=b"of another key")
    await world.db.gateways.save(closed)
    before = trail(world.store)
    await seed_gateways(world.gateways, "builtin", named("acme"))
    await refused_with(world.gateways.enable(acme, by=AN_ADMIN))
    assert trail(world.store) == before
    await world.gateways.set_credentials(acme, UpdateCredentials(credentials={"a": "1"}), by=AN_ADMIN)
    assert trail(world.store)[len(before) :] == [("gateway.set_credentials", acme, {"credentialsSet": (None, ["a"])})]


async def test_checkout_settings_tell_each_gateway_that_changed(world: GatewayWorld) -> None:
    ids = await world.seeded("one", "two")
    await world.choose(ids["one"], is_default=True)
    await world.choose(ids["one"])
    await world.choose(ids["two"], is_default=True, display_name="Cards")
    order = [OrderedGateway(gateway_id=id, display_order=7) for id in (ids["builtin"], ids["two"])]
    for _ in range(2):
        await world.settings.reorder("biz_1", ReorderGateways(order=order), by=MERCHANT)
    assert trail(world.store, business_id="biz_1") == [
        ("checkout.update", ids["one"], {"isDefault": (False, True)}),
        ("checkout.update", ids["two"], {"displayName": (None, "Cards"), "isDefault": (False, True)}),
        ("checkout.update", ids["one"], {"isDefault": (True, False)}),
        ("checkout.update", ids["two"], {"displayOrder": (None, 7)}),
    ]


@pytest.mark.rule("audit.5")
async def test_an_endpoint_is_told_without_its_secrets(world: GatewayWorld) -> None:
    await world.add(a_business())
    webhooks = Webhooks(world.store, world.clock, world.entropy, world.vault, sender=None)  # type: ignore[arg-type]
    command = CreateWebhook(url="https://shop.example/hooks?key=hush", environment=Environment.LIVE)
    made = await webhooks.create("biz_1", command, by=MERCHANT)
    for _ in range(2):
        await webhooks.change("biz_1", made.id, ChangeWebhook(description="Main"), by=MERCHANT)
    rotated = await webhooks.rotate_secret("biz_1", made.id, by=MERCHANT)
    for _ in range(2):
        await webhooks.deactivate("biz_1", made.id, by=MERCHANT)
    await webhooks.change("biz_1", made.id, ChangeWebhook(is_active=True), by=MERCHANT)
    url = "https://shop.example/hooks?[hidden]"
    first = {"environment": "LIVE", "url": url, "events": [], "isActive": True}
    assert trail(world.store, object_id=made.id) == [
        ("webhook.create", made.id, {name: (None, value) for name, value in first.items()}),
        ("webhook.update", made.id, {"description": (None, "Main")}),
        ("webhook.rotate", made.id, {}),
        ("webhook.deactivate", made.id, {"isActive": (True, False)}),
        ("webhook.update", made.id, {"isActive": (False, True)}),
    ]
    shown = repr(await entries(world.store))
    assert [one for one in ("hush", made.signing_secret, rotated.signing_secret) if one in shown] == []


@pytest.mark.parametrize("realm", list(ActorRealm))
async def test_a_merchant_is_not_told_from_where_an_operator_acted(world: GatewayWorld, realm: ActorRealm) -> None:
    audit = AuditTrail(world.store)
    await world.db.audit.add(replace(an_entry(1, business_id="biz_1"), realm=realm))
    (told,) = (await audit.page(AuditFilter(), None, 10)).entries
    assert (told.subject, told.address, told.request_id) == ("ada", "192.0.2.1", "request-1")
    (shown,) = (await audit.page(AuditFilter(business_id="biz_1"), None, 10, AuditEntryView.for_business)).entries
    is_operator = realm in (ActorRealm.ADMIN, ActorRealm.CLI)
    assert shown == (structs.replace(told, address=None, request_id=None) if is_operator else told)


async def test_an_entry_is_a_line_for_a_person(world: GatewayWorld) -> None:
    async with world.store.begin() as tx:
        by = Actor(ActorRealm.MERCHANT, "bo", "192.0.2.7", "req-1")
        changes: Changes = {
            "events": {"before": [], "after": ["a", "b"]},
            "isActive": {"before": True, "after": False},
            "description": {"before": "Ọjà", "after": "two\nlines"},
        }
        action = Action.WEBHOOK_UPDATE
        use, later = (
            UseCase(world.store, ManualClock(now), SeededEntropy(seed)) for seed, now in enumerate((NOW, NOW + DRAIN))
        )
        await use.record(tx, by, action, "whe_1", changes, business_id="biz_1")
        await later.record(tx, clock("drains"), Action.GATEWAY_END_DRAIN, "gw_1")
    drained, updated = map(line_of, (await AuditTrail(world.store).page(AuditFilter(), None, 9)).entries)
    assert drained == "2025-01-31 12:30:00Z  clock:drains  gateway.end_drain gw_1"
    assert updated == (
        "2025-01-31 12:00:00Z  merchant:bo from 192.0.2.7 (request req-1)  webhook.update whe_1 of biz_1  "
        'events: all -> a b, isActive: True -> False, description: Ọjà -> "two\\nlines"'
    )
