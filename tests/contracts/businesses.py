"""What every Store promises about businesses, their keys, gateways and checkout settings."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from payagg_testing.builders import MINUTE, NOW, TICK, a_business, a_choice, a_gateway, a_key, an_id

from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.store import Transaction
from payagg.domain.business import BusinessStatus, KycStatus, Role
from payagg.domain.gateway import Gateway, GatewayStatus
from payagg.domain.revocation import Revocation, RevokedClaim
from payagg.domain.values import Environment
from tests.contracts.database import Database, breaks_a_rule, put


async def introduced(tx: Transaction, gateway: Gateway) -> None:
    """Brings a gateway to where it stands along the machine: every gateway begins DISABLED."""
    new = replace(gateway, status=GatewayStatus.DISABLED, drain_started_at=None, drain_ends_at=None)
    assert await tx.gateways.add(new)
    if gateway.status is not GatewayStatus.DISABLED:
        await tx.gateways.save(replace(new, status=GatewayStatus.ACTIVE))
    if gateway.status is GatewayStatus.DRAINING:
        await tx.gateways.save(gateway)


async def with_businesses_named(db: Database, *names: str) -> list[str]:
    """Their ids, in this order."""
    ids = [an_id("biz", number) for number in range(len(names))]
    await put(db, *(a_business(id, name) for id, name in zip(ids, names, strict=True)))
    return ids


async def is_revoked(db: Database, token_id: str | None, subject: str, issued_at: datetime) -> bool:
    """By both ways to ask."""
    found = await db.find_member("biz_none", token_id, subject, issued_at)
    assert (found.role, found.business) == (None, None)
    assert found.is_revoked is await db.is_revoked(token_id, subject, issued_at)
    return found.is_revoked


class BusinessContract:
    async def test_a_business_comes_back_as_it_was_last_saved(self, db: Database) -> None:
        business, status, kyc = a_business(), BusinessStatus.SUSPENDED, KycStatus.UNDER_REVIEW
        changed = replace(business, name="Ada & Sons", status=status, kyc_status=kyc)
        await db.businesses.add(business)
        assert await db.businesses.get("biz_1") == business
        await db.businesses.save(changed)
        for id, stored in (("biz_1", changed), ("biz_2", None)):
            assert await db.businesses.lock(id) == await db.businesses.get(id) == stored
        assert await db.businesses.names(["biz_1", "biz_2"]) == {"biz_1": "Ada & Sons"}
        assert await db.businesses.names([]) == {}

    async def test_a_member_has_one_role_per_business(self, db: Database) -> None:
        first, second, third = (a_business(f"biz_{n}") for n in (1, 2, 3))
        for business, role in ((third, Role.ADMIN), (second, Role.MEMBER), (first, Role.OWNER)):
            await db.businesses.add(business)
            for subject, given in (("ada", Role.MEMBER), ("ada", role), ("Bo", Role.MEMBER)):
                await db.members.add(business.id, subject, given)
        await db.members.remove("biz_2", "Bo")
        await db.members.remove("biz_2", "nobody")
        for asked, found in (
            (("biz_1", "ada"), (first, Role.OWNER)),
            (("biz_3", "ada"), (third, Role.ADMIN)),
            (("biz_1", "Ada"), (first, None)),
            (("biz_4", "ada"), (None, None)),
        ):
            assert await db.members.lock_business(*asked) == found
            business_id, subject = asked
            assert await db.find_member(business_id, None, subject, NOW) == (False, *reversed(found))
        assert await db.members.managed_by("ada") == [(first, Role.OWNER), (third, Role.ADMIN)]
        assert await db.members.managed_by("Bo") == await db.members.managed_by("nobody") == []
        assert list((await db.members.of_business("biz_1")).items()) == [("Bo", Role.MEMBER), ("ada", Role.OWNER)]
        assert await db.members.of_business("biz_2") == {"ada": Role.MEMBER}
        assert await db.members.of_business("biz_4") == {}

    async def test_businesses_are_listed_newest_first_searched_literally_and_paged_by_cursor(
        self, db: Database
    ) -> None:
        ids = await with_businesses_named(db, "100% Cotton", "Ada_Obi", "ada obi", "Zed\\Co")

        async def found(search: str | None = None, after: str | None = None, limit: int = 10) -> list[int]:
            return [ids.index(business.id) for business in await db.businesses.list_businesses(search, after, limit)]

        by_search = {None: [3, 2, 1, 0], "ADA": [2, 1], "%": [0], "_": [1], "\\": [3], "nobody": []}
        assert {search: await found(search) for search in by_search} == by_search
        pages = [await found(limit=2), await found(after=ids[2], limit=2), await found("ADA", after=ids[2])]
        assert pages == [[3, 2], [1, 0], [1]]

    async def test_a_key_is_found_by_its_hash_with_its_business(self, db: Database) -> None:
        key, business = a_key(), a_business()
        await put(db, business, key)
        assert await db.api_keys.get("biz_1", key.id) == key
        assert await db.api_keys.get("biz_2", key.id) is await db.api_keys.get("biz_1", "key_2") is None
        await breaks_a_rule(db.api_keys.add(replace(a_key("key_2"), secret_hash=key.secret_hash)))
        assert await db.find_key(key.secret_hash) == KeyHolder(key, business)
        assert await db.find_key(b"\x00" * 32) is None
        await db.api_keys.save(key.revoke(NOW + MINUTE))
        assert await db.find_key(key.secret_hash) == KeyHolder(key.revoke(NOW + MINUTE), business)

    async def test_last_use_is_written_at_most_once_a_minute(self, db: Database) -> None:
        key = a_key()
        await put(db, a_business(), key)
        for now, written in ((NOW, NOW), (NOW + MINUTE - TICK, NOW), (NOW + MINUTE, NOW + MINUTE)):
            await db.touch_key(key.id, now)
            holder = await db.find_key(key.secret_hash)
            assert holder is not None
            assert holder.key.last_used_at == written
        await db.touch_key("no such key", NOW)

    async def test_keys_are_counted_and_listed_by_environment(self, db: Database) -> None:
        keys = [a_key(f"key_{n}", now=NOW + n * MINUTE) for n in range(5)]
        live, ended = (a_key(f"key_live_{n}", Environment.LIVE) for n in range(2))
        await put(db, a_business(), *keys, live, ended)
        ended = ended.revoke(NOW + MINUTE)  # before all others
        await db.api_keys.save(ended)
        for n, at in ((0, 3), (1, 1), (2, 2)):  # revoked in another order than they were made
            await db.api_keys.save(keys[n].revoke(NOW + timedelta(hours=at)))
        owners = (("biz_1", Environment.SANDBOX), ("biz_1", Environment.LIVE), ("biz_2", Environment.LIVE))
        assert [await db.api_keys.count_active(*owner) for owner in owners] == [2, 1, 0]
        listed = await db.api_keys.list_keys("biz_1", 2)
        sandbox = [key.id for key in listed if key.environment is Environment.SANDBOX]
        assert sandbox == ["key_4", "key_3", "key_0", "key_2"]
        assert [key for key in listed if key.environment is Environment.LIVE] == [live, ended]

    async def test_a_token_is_revoked_by_its_id_whenever_it_was_issued(self, db: Database) -> None:
        assert not await is_revoked(db, "t-1", "ada", NOW)
        await db.members.revoke(Revocation(RevokedClaim.TOKEN, "t-1", NOW))
        assert await is_revoked(db, "t-1", "ada", NOW + TICK)
        assert not await is_revoked(db, "t-2", "t-1", NOW - TICK)
        assert not await is_revoked(db, None, "ada", NOW - TICK)

    async def test_a_subjects_tokens_are_revoked_up_to_an_instant_that_never_goes_back(self, db: Database) -> None:
        for at in (NOW, NOW - timedelta(days=1)):
            await db.members.revoke(Revocation(RevokedClaim.SUBJECT, "ada", at))
            assert await is_revoked(db, None, "ada", NOW - TICK)
            assert not await is_revoked(db, None, "ada", NOW)
        assert not await is_revoked(db, "ada", "bo", NOW - TICK)
        await db.members.revoke(Revocation(RevokedClaim.SUBJECT, "ada", NOW + TICK))
        assert await is_revoked(db, None, "ada", NOW)


class GatewayContract:
    async def test_a_gateway_comes_back_as_it_was_last_saved(self, db: Database) -> None:
        gateway = a_gateway("mine", credentials=b"\x00sealed", description="Cards", logo_path="gw/logo.png")
        draining = gateway.disable(NOW)
        await introduced(db, gateway)
        assert await db.gateways.get(gateway.id) == gateway
        await db.gateways.save(draining)
        assert draining.drain_ends_at is not None
        assert await db.gateways.lock(gateway.id) == draining
        assert await db.gateways.by_slug("mine") == draining
        assert await db.gateways.by_slug("Mine") is await db.gateways.get("gw_none") is None
        assert await db.gateways.draining(draining.drain_ends_at - TICK) == []
        assert await db.gateways.draining(draining.drain_ends_at) == [draining]

    async def test_a_slug_is_taken_until_its_gateway_is_deleted(self, db: Database) -> None:
        first = a_gateway("mine", GatewayStatus.DISABLED)
        second = replace(first, id="gw_second")
        async with db.begin() as tx:
            assert await tx.gateways.add(first)
            assert not await tx.gateways.add(second)
            await tx.gateways.save(first.delete(NOW))
        assert await db.gateways.get(first.id) is await db.gateways.lock(first.id) is None
        assert await db.gateways.add(second)
        assert await db.gateways.by_slug("mine") == second
        assert await db.gateways.all() == [second]
        assert await db.gateways.everything() == [first.delete(NOW), second]  # copies in other cells hear of both

    async def test_a_deleted_gateway_is_found_for_settling_alone(self, db: Database) -> None:
        first = a_gateway("mine", GatewayStatus.DISABLED, credentials=b"1")
        second = replace(first, id="gw_second", credentials=None, replaced_secrets=b"2", replaced_secrets_until=NOW)
        empty = replace(first, id="gw_empty", credentials=None)
        living = replace(first, id="gw_living", credentials=None)
        gone = [first.delete(NOW), second.delete(NOW + MINUTE), empty.delete(NOW)]
        for gateway, deleted in zip((first, second, empty), gone, strict=True):
            assert await db.gateways.add(gateway)
            await db.gateways.save(deleted)
        assert await db.gateways.get_any(first.id) == gone[0]
        assert await db.gateways.get_any("gw_none") is None
        assert await db.find_retiring_gateways("mine") == [gone[1], gone[0]]
        assert await db.gateways.add(living)
        found = await asyncio.gather(*map(db.find_retiring_gateways, ("mine", "other", "mine")))
        assert found == [[living, gone[1], gone[0]], [], [living, gone[1], gone[0]]]
        assert await db.gateways.get_any(living.id) == living

    async def test_secrets_are_to_be_wiped_of_deleted_gateways_and_at_the_end_of_an_overlap(self, db: Database) -> None:
        deleted = a_gateway("one", GatewayStatus.DISABLED, credentials=b"1")
        rotated = a_gateway("two", GatewayStatus.DISABLED, replaced_secrets=b"2", replaced_secrets_until=NOW + MINUTE)
        kept = a_gateway("three", GatewayStatus.DISABLED, credentials=b"3")
        for gateway in (deleted, rotated, kept):
            assert await db.gateways.add(gateway)
        assert await db.gateways.to_wipe(NOW) == []
        await db.gateways.save(deleted.delete(NOW))
        assert {gateway.id for gateway in await db.gateways.to_wipe(NOW + MINUTE - TICK)} == {deleted.id}
        assert {gateway.id for gateway in await db.gateways.to_wipe(NOW + MINUTE)} == {deleted.id, rotated.id}
        await db.gateways.save(replace(deleted.delete(NOW), credentials=None))
        assert await db.gateways.to_wipe(NOW) == []

    async def test_settings_come_back_by_gateway_and_gateways_by_order_then_slug(self, db: Database) -> None:
        gateways = [
            a_gateway("zz", display_order=1),
            a_gateway("aa", display_order=2),
            a_gateway("mm", display_order=1),
        ]
        choice = a_choice(gateways[0], display_name="Cards", display_order=3, is_default=True)
        await db.businesses.add(a_business())
        for gateway in gateways:
            await introduced(db, gateway)
        listed = await db.gateways.all()
        assert [gateway.slug for gateway in listed if gateway in gateways] == ["mm", "zz", "aa"]
        assert (await db.gateway_choices.of_business("biz_1")).settings == {}
        for saved in (choice, replace(choice, display_name=None)):
            await db.gateway_choices.save(saved)
            assert (await db.gateway_choices.of_business("biz_1")).settings == {choice.gateway_id: saved}
            choices = await db.gateway_choices.of_business("biz_1")
            assert (choices.gateways, choices.settings) == (listed, {choice.gateway_id: saved})
            assert choices.health == await db.health.all()
            assert await db.find_choices("biz_1") == choices
        assert (await db.find_choices("biz_2")).settings == {}

    async def test_a_business_has_at_most_one_default(self, db: Database) -> None:
        gateways = [a_gateway("one"), a_gateway("two")]
        await put(db, a_business(), a_business("biz_2"))
        for gateway in gateways:
            await introduced(db, gateway)
            await db.gateway_choices.save(a_choice(gateway, is_default=True))
        await db.gateway_choices.save(a_choice(gateways[0], "biz_2", is_default=True))
        mine, others = (
            (await db.gateway_choices.of_business("biz_1")).settings,
            (await db.gateway_choices.of_business("biz_2")).settings,
        )
        assert [own.gateway_id for own in mine.values() if own.is_default] == [gateways[1].id]
        assert others[gateways[0].id].is_default

    async def test_opt_outs_count_active_businesses_alone(self, db: Database) -> None:
        gateway, other = a_gateway("one"), a_gateway("two")
        before = await db.gateway_choices.active_businesses()
        await introduced(db, gateway)
        await introduced(db, other)
        for number, status in enumerate((BusinessStatus.ACTIVE, BusinessStatus.ACTIVE, BusinessStatus.RESTRICTED)):
            await db.businesses.add(a_business(f"biz_{number}", f"Shop {number}", status))
            await db.gateway_choices.save(a_choice(gateway, f"biz_{number}", is_enabled=False))
        await db.gateway_choices.save(a_choice(other, "biz_0", is_enabled=True))
        assert await db.gateway_choices.active_businesses() == before + 2
        found = [await db.gateway_choices.opt_outs(of) for of in (gateway.id, other.id, None)]
        assert found == [{gateway.id: 2}, {}, {gateway.id: 2}]
        overrides = await db.gateway_choices.overrides(gateway.id)
        assert {merchant.business.name for merchant in overrides} >= {"Shop 0", "Shop 1"}

    async def test_merchants_are_paged_by_name_and_searched_literally(self, db: Database) -> None:
        gateway = a_gateway("one")
        await introduced(db, gateway)
        ids = await with_businesses_named(db, "100% Cotton", "Ada_Obi", "ada obi", "Zed\\Co", "Ọjà Ọba")
        choice = a_choice(gateway, ids[1], display_name="Cards")
        await db.gateway_choices.save(choice)

        async def found(search: str | None, offset: int = 0, limit: int = 10) -> tuple[list[int], int]:
            page, total = await db.gateway_choices.merchants(gateway.id, search, offset, limit)
            assert all(merchant.settings == (choice if merchant.business.id == ids[1] else None) for merchant in page)
            return sorted(ids.index(merchant.business.id) for merchant in page), total

        by_search = {
            "%": ([0], 1),
            "_": ([1], 1),
            "\\": ([3], 1),
            "ADA": ([1, 2], 2),
            "ọjà": ([4], 1),
            "nobody": ([], 0),
        }
        assert {search: await found(search) for search in by_search} == by_search
        every, _ = await db.gateway_choices.merchants(gateway.id, None, 0, 1_000)
        order = [ids.index(merchant.business.id) for merchant in every if merchant.business.id in ids]
        assert order == [0, 2, 1, 3, 4]  # as people read: "ada obi" beside "Ada_Obi", not behind "Zed"
        pages = [await found(None, offset, 1) for offset in range(6)]
        assert sorted(number for page, _ in pages for number in page) == [0, 1, 2, 3, 4]
        assert {total for _, total in pages} == {5}
