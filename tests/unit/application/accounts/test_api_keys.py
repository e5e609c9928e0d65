"""Keys of a business on the memory store: how many, who may, and what is shown."""

from datetime import timedelta

import pytest
from payagg_testing.builders import AN_ADMIN, SANDBOX, an_actor

from payagg.application.accounts.api_keys import ApiKeys, GenerateApiKey
from payagg.application.schemas.gateways import OrderedGateway, ReorderGateways, UpdateBusinessGateway
from payagg.application.schemas.webhooks import ChangeWebhook, CreateWebhook
from payagg.domain.api_key import ApiKeyStatus
from payagg.domain.audit import Action, ActorRealm
from payagg.domain.business import Role
from payagg.domain.errors import ErrorCode
from payagg.domain.values import Environment
from tests.support.audit_trail import trail
from tests.support.memory_shop import SHOP, MemoryShop
from tests.support.refusals import refused_with


async def a_shop() -> tuple[MemoryShop, ApiKeys]:
    shop = await MemoryShop().open(keys=False)
    return shop, shop.services.api_keys


def asked(environment: Environment = SANDBOX, name: str = "Server") -> GenerateApiKey:
    return GenerateApiKey(environment=environment, name=name)


async def test_a_key_is_revoked_once_by_its_own_business() -> None:
    shop, keys = await a_shop()
    made = await keys.generate(SHOP, asked(), by=AN_ADMIN)
    for business_id, key_id in (("biz_2", made.id), (SHOP, "key_nobodys")):
        assert await refused_with(keys.revoke(business_id, key_id, by=AN_ADMIN)) == (ErrorCode.NOT_FOUND, None)
    shop.clock.move(timedelta(seconds=1))
    await keys.revoke(SHOP, made.id, by=AN_ADMIN)
    [record] = (await keys.groups(SHOP)).sandbox
    assert (record.status, record.revoked_at) == (ApiKeyStatus.REVOKED, shop.clock.now())
    again = keys.revoke(SHOP, made.id, by=AN_ADMIN)
    assert await refused_with(again) == (ErrorCode.API_KEY_ALREADY_REVOKED, None)
    facts = {"name": "Server", "environment": "SANDBOX", "publicKey": made.public_key, "status": "ACTIVE"}
    assert trail(shop.store) == [
        (Action.API_KEY_CREATE.value, made.id, {name: (None, value) for name, value in facts.items()}),
        (Action.API_KEY_REVOKE.value, made.id, {"status": ("ACTIVE", "REVOKED")}),
    ]


@pytest.mark.rule("limits.7")
async def test_the_twenty_most_recently_revoked_keys_are_listed() -> None:
    shop, keys = await a_shop()
    made = []
    for _ in range(22):
        key = await keys.generate(SHOP, asked(), by=AN_ADMIN)
        shop.clock.move(timedelta(seconds=1))
        await keys.revoke(SHOP, key.id, by=AN_ADMIN)
        made.append(key.id)
    assert [record.id for record in (await keys.groups(SHOP)).sandbox] == made[:1:-1]


@pytest.mark.parametrize("role", [None, Role.MEMBER])
async def test_a_membership_that_ends_before_the_change_makes_none(role: Role | None) -> None:
    """The owner was admitted to each of these calls, and waits for the lock of those who remove her."""
    shop, keys = await a_shop()
    ada = an_actor(ActorRealm.MERCHANT)
    webhooks, settings = shop.services.webhooks, shop.services.checkout_settings
    hook = CreateWebhook(url="https://shop.example/hooks", environment=SANDBOX)
    made = await webhooks.create(SHOP, hook, by=ada)
    members = shop.store.transaction.members
    await (members.remove(SHOP, "ada") if role is None else members.add(SHOP, "ada", role))
    before = len(shop.store.state.audit)
    order = ReorderGateways(order=[OrderedGateway(gateway_id="gw_provider_a", display_order=1)])
    for change in (
        keys.generate(SHOP, asked(), by=ada),
        webhooks.create(SHOP, hook, by=ada),
        webhooks.change(SHOP, made.id, ChangeWebhook(url="https://other.example"), by=ada),
        webhooks.rotate_secret(SHOP, made.id, by=ada),
        webhooks.remove(SHOP, made.id, by=ada),
        settings.update(SHOP, "gw_provider_a", UpdateBusinessGateway(is_enabled=False), by=ada),
        settings.reorder(SHOP, order, by=ada),
    ):
        assert await refused_with(change) == (ErrorCode.FORBIDDEN, None)
    assert len(shop.store.state.audit) == before
