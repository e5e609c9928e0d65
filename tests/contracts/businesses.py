"""What every Store promises about businesses, their keys, gateways and checkout settings."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from payagg_testing.builders import NOW, a_business, a_choice, a_gateway, a_key, an_id

from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.store import Store, Transaction
from payagg.domain.business import BusinessStatus, KycStatus, Role
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.values import Environment

MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)


async def introduced(tx: Transaction, gateway: Gateway) -> None:
    """Brings a gateway to where it stands along the machine: every gateway begins DISABLED."""
    new = replace(gateway, status=GatewayStatus.DISABLED, drain_started_at=None, drain_ends_at=None)
    assert await tx.gateways.add(new)
    if gateway.status is not GatewayStatus.DISABLED:
        await tx.gateways.save(replace(new, status=GatewayStatus.ACTIVE))
    if gateway.status is GatewayStatus.DRAINING:
        await tx.gateways.save(gateway)


class BusinessContract:
    async def test_a_business_comes_back_as_it_was_last_saved(self, store: Store) -> None:
        business = a_business()
        changed = replace(
            business, name="Ada & Sons", status=BusinessStatus.SUSPENDED, kyc_status=KycStatus.UNDER_REVIEW
        )
        async with store.begin() as tx:
            await tx.businesses.add(business)
            assert await tx.businesses.get("biz_1") == business
            await tx.businesses.save(changed)
        async with store.begin() as tx:
            assert await tx.businesses.lock("biz_1") == changed
            assert await tx.businesses.get("biz_2") is None
            assert await tx.businesses.lock("biz_2") is None

    async def test_a_member_has_one_role_per_business(self, store: Store) -> None:
        first, second, third = (a_business(f"biz_{n}") for n in (1, 2, 3))
        async with store.begin() as tx:
            for business, role in ((third, Role.ADMIN), (second, Role.MEMBER), (first, Role.OWNER)):
                await tx.businesses.add(business)
                for subject, given in (("ada", Role.MEMBER), ("ada", role), ("Bo", Role.MEMBER)):
                    await tx.members.add(business.id, subject, given)
            await tx.members.remove("biz_2", "Bo")
            await tx.members.remove("biz_2", "nobody")
        async with store.begin() as tx:
            roles = [await tx.members.role(id, name) for id, name in (("biz_1", "ada"), ("biz_3", "ada"))]
            assert roles == [Role.OWNER, Role.ADMIN]
            assert await tx.members.role("biz_1", "Ada") is await tx.members.role("biz_4", "ada") is None
            assert await tx.members.managed_by("ada") == [(first, Role.OWNER), (third, Role.ADMIN)]
            assert await tx.members.managed_by("Bo") == await tx.members.managed_by("nobody") == []
            assert list((await tx.members.of_business("biz_1")).items()) == [("Bo", Role.MEMBER), ("ada", Role.OWNER)]
            assert await tx.members.of_business("biz_2") == {"ada": Role.MEMBER}
            assert await tx.members.of_business("biz_4") == {}

    async def test_businesses_are_listed_newest_first_searched_literally_and_paged_by_cursor(
        self, store: Store
    ) -> None:
        names = ("100% Cotton", "Ada_Obi", "ada obi", "Zed\\Co")
        ids = [an_id("biz", number) for number in range(len(names))]
        async with store.begin() as tx:
            for id, name in zip(ids, names, strict=True):
                await tx.businesses.add(a_business(id, name, BusinessStatus.SUSPENDED))

            async def found(search: str | None = None, after: str | None = None, limit: int = 10) -> list[int]:
                return [
                    ids.index(business.id) for business in await tx.businesses.list_businesses(search, after, limit)
                ]

            assert await found() == [3, 2, 1, 0]
            assert await found(limit=2) == [3, 2]
            assert await found(after=ids[2], limit=2) == [1, 0]
            assert await found("ADA") == [2, 1]
            assert await found("ADA", after=ids[2]) == [1]
            assert await found("%") == [0]
            assert await found("_") == [1]
            assert await found("\\") == [3]
            assert await found("nobody") == []
            assert await tx.businesses.count() == len(ids)

    async def test_a_key_is_found_by_its_hash_with_its_business(self, store: Store) -> None:
        key, business = a_key(), a_business()
        async with store.begin() as tx:
            await tx.businesses.add(business)
            await tx.api_keys.add(key)
            assert await tx.api_keys.get("biz_1", key.id) == key
            assert await tx.api_keys.get("biz_2", key.id) is await tx.api_keys.get("biz_1", "key_2") is None
        with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own word for a shared secret
            async with store.begin() as tx:
                await tx.api_keys.add(replace(a_key("key_2"), secret_hash=key.secret_hash))
        assert await store.find_key(key.secret_hash) == KeyHolder(key, business)
        assert await store.find_key(b"\x00" * 32) is None
        async with store.begin() as tx:
            await tx.api_keys.save(key.revoke(NOW + MINUTE))
        assert await store.find_key(key.secret_hash) == KeyHolder(key.revoke(NOW + MINUTE), business)

    async def test_last_use_is_written_at_most_once_a_minute(self, store: Store) -> None:
        key = a_key()
        async with store.begin() as tx:
            await tx.businesses.add(a_business())
            await tx.api_keys.add(key)
        for now, written in ((NOW, NOW), (NOW + MINUTE - TICK, NOW), (NOW + MINUTE, NOW + MINUTE)):
            await store.touch_key(key.id, now)
            holder = await store.find_key(key.secret_hash)
            assert holder is not None
            assert holder.key.last_used_at == written
        await store.touch_key("no such key", NOW)

    async def test_keys_are_counted_and_listed_by_environment(self, store: Store) -> None:
        keys = [a_key(f"key_{n}", now=NOW + n * MINUTE) for n in range(5)]
        live = a_key("key_live", Environment.LIVE)
        async with store.begin() as tx:
            await tx.businesses.add(a_business())
            for key in [*keys, live]:
                await tx.api_keys.add(key)
            # Revoked in another order than they were made.
            revoked = [keys[n].revoke(NOW + timedelta(hours=at)) for n, at in ((0, 3), (1, 1), (2, 2))]
            for key in revoked:
                await tx.api_keys.save(key)
        async with store.begin() as tx:
            assert await tx.api_keys.count_active("biz_1", Environment.SANDBOX) == 2
            assert await tx.api_keys.count_active("biz_1", Environment.LIVE) == 1
            assert await tx.api_keys.count_active("biz_2", Environment.LIVE) == 0
            listed = await tx.api_keys.list_keys("biz_1", Environment.SANDBOX, 2)
            assert [key.id for key in listed] == ["key_4", "key_3", "key_0", "key_2"]
            assert await tx.api_keys.list_keys("biz_1", Environment.LIVE, 20) == [live]


class GatewayContract:
    async def test_a_gateway_comes_back_as_it_was_last_saved(self, store: Store) -> None:
        gateway = a_gateway("mine", credentials=b"\x00sealed", description="Cards", logo_path="gw/logo.png")
        draining = gateway.disable(NOW)
        async with store.begin() as tx:
            await introduced(tx, gateway)
            assert await tx.gateways.get(gateway.id) == gateway
            await tx.gateways.save(draining)
        assert draining.drain_ends_at is not None
        async with store.begin() as tx:
            assert await tx.gateways.lock(gateway.id) == draining
            assert await tx.gateways.by_slug("mine") == draining
            assert await tx.gateways.by_slug("Mine") is await tx.gateways.get("gw_none") is None
            assert await tx.gateways.draining(draining.drain_ends_at - TICK) == []
            assert await tx.gateways.draining(draining.drain_ends_at) == [draining]

    async def test_a_slug_is_taken_until_its_gateway_is_deleted(self, store: Store) -> None:
        first = a_gateway("mine", GatewayStatus.DISABLED)
        second = replace(first, id="gw_second")
        async with store.begin() as tx:
            assert await tx.gateways.add(first)
            assert not await tx.gateways.add(second)
            await tx.gateways.save(first.delete(NOW))
        async with store.begin() as tx:
            assert await tx.gateways.get(first.id) is await tx.gateways.lock(first.id) is None
            assert await tx.gateways.add(second)
            assert await tx.gateways.by_slug("mine") == second
            assert await tx.gateways.all() == [second]
            assert await tx.gateways.everything() == [first.delete(NOW), second]  # copies in other cells hear of both

    async def test_a_deleted_gateway_is_found_for_settling_alone(self, store: Store) -> None:
        first = a_gateway("mine", GatewayStatus.DISABLED, credentials=b"1")
        second = replace(first, id="gw_second", credentials=None, replaced_secrets=b"2", replaced_secrets_until=NOW)
        empty = replace(first, id="gw_empty", credentials=None)
        living = replace(first, id="gw_living", credentials=None)
        gone = [first.delete(NOW), second.delete(NOW + MINUTE), empty.delete(NOW)]
        async with store.begin() as tx:
            for gateway, deleted in zip((first, second, empty), gone, strict=True):
                assert await tx.gateways.add(gateway)
                await tx.gateways.save(deleted)
        async with store.begin() as tx:
            assert await tx.gateways.get_any(first.id) == gone[0]
            assert await tx.gateways.get_any("gw_none") is None
        assert await store.find_retiring_gateways("mine") == [gone[1], gone[0]]
        async with store.begin() as tx:
            assert await tx.gateways.add(living)
        found = await asyncio.gather(*map(store.find_retiring_gateways, ("mine", "other", "mine")))
        assert found == [[living, gone[1], gone[0]], [], [living, gone[1], gone[0]]]
        async with store.begin() as tx:
            assert await tx.gateways.get_any(living.id) == living

    async def test_secrets_are_to_be_wiped_of_deleted_gateways_and_at_the_end_of_an_overlap(self, store: Store) -> None:
        deleted = a_gateway("one", GatewayStatus.DISABLED, credentials=b"1")
        rotated = a_gateway("two", GatewayStatus.DISABLED, replaced_secrets=b"2", replaced_secrets_until=NOW + MINUTE)
        kept = a_gateway("three", GatewayStatus.DISABLED, credentials=b"3")
        async with store.begin() as tx:
            for gateway in (deleted, rotated, kept):
                assert await tx.gateways.add(gateway)
            assert await tx.gateways.to_wipe(NOW) == []
            await tx.gateways.save(deleted.delete(NOW))
            assert {gateway.id for gateway in await tx.gateways.to_wipe(NOW + MINUTE - TICK)} == {deleted.id}
            assert {gateway.id for gateway in await tx.gateways.to_wipe(NOW + MINUTE)} == {deleted.id, rotated.id}
            await tx.gateways.save(replace(deleted.delete(NOW), credentials=None))
            assert await tx.gateways.to_wipe(NOW) == []

    async def test_gateways_are_listed_by_order_then_slug(self, store: Store) -> None:
        ours = [a_gateway("zz", display_order=1), a_gateway("aa", display_order=2), a_gateway("mm", display_order=1)]
        async with store.begin() as tx:
            for gateway in ours:
                await introduced(tx, gateway)
            listed = [gateway.slug for gateway in await tx.gateways.all() if gateway in ours]
        assert listed == ["mm", "zz", "aa"]

    async def test_settings_come_back_by_gateway(self, store: Store) -> None:
        gateway = a_gateway("mine")
        choice = a_choice(gateway, display_name="Cards", display_order=3, is_default=True)
        async with store.begin() as tx:
            await tx.businesses.add(a_business())
            await introduced(tx, gateway)
            assert await tx.gateway_choices.settings("biz_1") == {}
            await tx.gateway_choices.save(choice)
            assert await tx.gateway_choices.settings("biz_1") == {gateway.id: choice}
            choices = await tx.gateway_choices.of_business("biz_1")
            assert (choices.gateways, choices.settings) == (await tx.gateways.all(), {gateway.id: choice})
            assert choices.health == await tx.health.all()
        assert await store.find_choices("biz_1") == choices
        assert (await store.find_choices("biz_2")).settings == {}
        async with store.begin() as tx:
            await tx.gateway_choices.save(replace(choice, display_name=None))
        async with store.begin() as tx:
            assert await tx.gateway_choices.settings("biz_1") == {gateway.id: replace(choice, display_name=None)}

    async def test_a_business_has_at_most_one_default(self, store: Store) -> None:
        gateways = [a_gateway("one"), a_gateway("two")]
        async with store.begin() as tx:
            for business in (a_business(), a_business("biz_2")):
                await tx.businesses.add(business)
            for gateway in gateways:
                await introduced(tx, gateway)
                await tx.gateway_choices.save(a_choice(gateway, is_default=True))
            await tx.gateway_choices.save(a_choice(gateways[0], "biz_2", is_default=True))
        async with store.begin() as tx:
            mine, others = await tx.gateway_choices.settings("biz_1"), await tx.gateway_choices.settings("biz_2")
        assert [own.gateway_id for own in mine.values() if own.is_default] == [gateways[1].id]
        assert others[gateways[0].id].is_default

    async def test_opt_outs_count_active_businesses_alone(self, store: Store) -> None:
        gateway, other = a_gateway("one"), a_gateway("two")
        async with store.begin() as tx:
            before = await tx.gateway_choices.active_businesses()
            await introduced(tx, gateway)
            await introduced(tx, other)
            for number, status in enumerate((BusinessStatus.ACTIVE, BusinessStatus.ACTIVE, BusinessStatus.RESTRICTED)):
                await tx.businesses.add(a_business(f"biz_{number}", f"Shop {number}", status))
                await tx.gateway_choices.save(a_choice(gateway, f"biz_{number}", is_enabled=False))
            await tx.gateway_choices.save(a_choice(other, "biz_0", is_enabled=True))
            assert await tx.gateway_choices.active_businesses() == before + 2
            assert await tx.gateway_choices.opt_outs(gateway.id) == {gateway.id: 2}
            assert await tx.gateway_choices.opt_outs(other.id) == {}
            assert (await tx.gateway_choices.opt_outs())[gateway.id] == 2
            overrides = await tx.gateway_choices.overrides(gateway.id)
            assert {merchant.business.name for merchant in overrides} >= {"Shop 0", "Shop 1"}

    async def test_merchants_are_paged_by_name_and_searched_literally(self, store: Store) -> None:
        gateway = a_gateway("one")
        names = {"biz_0": "100% Cotton", "biz_1": "Ada_Obi", "biz_2": "ada obi", "biz_3": "Zed\\Co"}
        async with store.begin() as tx:
            await introduced(tx, gateway)
            for id, name in names.items():
                await tx.businesses.add(a_business(id, name))
            choice = a_choice(gateway, "biz_1", display_name="Cards")
            await tx.gateway_choices.save(choice)

            async def found(search: str | None, offset: int = 0, limit: int = 10) -> tuple[list[str], int]:
                page, total = await tx.gateway_choices.merchants(gateway.id, search, offset, limit)
                return sorted(merchant.business.id for merchant in page), total

            assert await found("%") == (["biz_0"], 1)
            assert await found("_") == (["biz_1"], 1)
            assert await found("\\") == (["biz_3"], 1)
            assert await found("ADA") == (["biz_1", "biz_2"], 2)
            assert await found("nobody") == ([], 0)
            assert (await found(None))[1] == 4
            assert await found(None, offset=4) == ([], 4)
            pages = [(await tx.gateway_choices.merchants(gateway.id, None, n, 1))[0][0] for n in range(4)]
            assert sorted(page.business.id for page in pages) == sorted(names)
            assert {page.business.id: page.settings for page in pages}["biz_1"] == choice
