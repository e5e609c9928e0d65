"""Who is let in, and what a cached key may do, on the memory store."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from payagg_testing.builders import a_business, an_actor
from payagg_testing.clocks import START, ManualClock
from payagg_testing.memory import MemoryStore

from payagg.adapters.system import SystemEntropy
from payagg.application.accounts.access import REMEMBERED_MAX, Access, TokenRevocations
from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import KeyStateChanged, Unavailable
from payagg.domain.api_key import ApiKey, parse_secret
from payagg.domain.audit import ActorRealm, AuditFilter
from payagg.domain.business import Role
from payagg.domain.errors import ErrorCode, Refusal
from payagg.domain.revocation import RevokedClaim
from payagg.domain.values import Environment
from tests.support.refusals import refused_with

OPERATOR = an_actor(ActorRealm.CLI)


class Claims:
    """Tokens that are their own claims."""

    def read(self, token: Any) -> dict[str, Any]:
        return {"sub": "ada", **token}


class AccessWorld:
    """A business, its owner `ada` and one key, whose use was noted just now."""

    def __init__(self, environment: Environment = Environment.SANDBOX, **business: Any) -> None:
        self.store, self.clock = MemoryStore(), ManualClock()
        self.access = Access(self.store, self.clock, Claims())
        self.business = a_business(**business)
        self.environment = environment
        self.worked: list[bool] = []  # for each time: whether the key was a cached one
        self.fault: Callable[[KeyHolder], Exception | None] = lambda _: None

    async def opened(self) -> "AccessWorld":
        facts: dict[str, Any] = {"id": "key_1", "business_id": "biz_1", "environment": self.environment, "now": START}
        self.key, secret = ApiKey.generate(name="Server", secret_hex="0" * 48, public_hex="0" * 32, **facts)
        self.secret = parse_secret(secret)
        await self.store.transaction.businesses.add(self.business)
        await self.store.transaction.members.add("biz_1", "ada", Role.OWNER)
        await self.store.transaction.api_keys.add(self.key)
        await self.store.touch_key("key_1", START)
        return self

    async def work(self, holder: KeyHolder) -> str:
        self.worked.append(holder.is_cached)
        if (fault := self.fault(holder)) is not None:
            raise fault
        return holder.key.id

    @property
    def recalled(self) -> KeyHolder | None:
        return self.access.recall(self.secret, self.clock.now())

    async def with_key(self) -> str:
        return await self.access.with_key(self.secret, self.recalled, self.work)

    async def revoke(self) -> None:
        await self.store.transaction.api_keys.save(self.key.revoke(START))


@pytest.fixture
async def world() -> AccessWorld:
    return await AccessWorld().opened()


async def refusal(awaitable: Awaitable[object]) -> ErrorCode:
    return (await refused_with(awaitable))[0]


def revocations(world: AccessWorld) -> TokenRevocations:
    return TokenRevocations(world.store, world.clock, SystemEntropy("PAY"))


async def test_a_key_is_cached_for_a_minute_once_it_was_accepted(world: AccessWorld) -> None:
    for _ in range(3):
        assert await world.with_key() == "key_1"
    world.clock.move(timedelta(minutes=1))
    await world.with_key()
    assert world.worked == [False, True, True, False]


async def test_a_keys_use_is_noted_once_a_minute(world: AccessWorld) -> None:
    for seconds, noted in ((59, 0), (1, 60), (0, 60), (59, 60), (1, 120)):
        world.clock.move(timedelta(seconds=seconds))
        await world.access.secret_key(world.secret)
        holder = await world.store.find_key(world.key.secret_hash)
        assert holder is not None
        assert holder.key.last_used_at == START + timedelta(seconds=noted)


async def test_what_a_cached_key_is_refused_is_tried_with_a_key_that_was_read(world: AccessWorld) -> None:
    await world.with_key()
    for stale in (Refusal(ErrorCode.PAYMENT_NOT_FOUND), KeyStateChanged()):
        world.fault = lambda holder, stale=stale: stale if holder.is_cached else None  # type: ignore[misc]
        world.worked.clear()
        assert await world.with_key() == "key_1"
        assert world.worked == [True, False]


async def test_a_key_that_changed_before_its_use_is_read_again(world: AccessWorld) -> None:
    """It may be revoked, or leave for another cell, between its read and the statement that goes by it."""

    async def revoked_meanwhile(holder: KeyHolder) -> str:
        world.worked.append(holder.is_cached)
        await world.revoke()
        raise KeyStateChanged

    call = world.access.with_key(world.secret, world.recalled, revoked_meanwhile)
    assert (await refusal(call), world.worked) == (ErrorCode.INVALID_API_KEY, [False])


async def test_a_key_that_keeps_changing_is_no_answer_after_a_few_reads(world: AccessWorld) -> None:
    world.fault = lambda _: KeyStateChanged()
    with pytest.raises(Unavailable):
        await world.with_key()
    assert 1 < len(world.worked) < 10
    world.worked.clear()
    world.fault = lambda _: RuntimeError()  # any other fault is not tried again
    with pytest.raises(RuntimeError):
        await world.with_key()
    assert len(world.worked) == 1


async def test_the_refusal_of_a_key_comes_before_the_refusal_of_its_work(world: AccessWorld) -> None:
    await world.with_key()
    world.fault = lambda _: Refusal(ErrorCode.VALIDATION_ERROR)
    assert await refusal(world.with_key()) is ErrorCode.VALIDATION_ERROR
    await world.revoke()
    assert await refusal(world.with_key()) is ErrorCode.INVALID_API_KEY


@pytest.mark.rule("access.12")
async def test_a_revoked_token_lets_nobody_in_from_the_next_request_on(world: AccessWorld) -> None:
    now = int(START.timestamp())
    admin: Any = {"type": "admin", "role": "ADMIN", "jti": "t-1", "iat": now - 1}
    other: Any = admin | {"jti": "t-2"}
    dateless: Any = {"type": "merchant", "emailVerified": True}
    merchant: Any = dateless | {"iat": now - 1}
    await world.access.administrator(admin, changes=True)
    await revocations(world).revoke(RevokedClaim.TOKEN, "t-1", by=OPERATOR)
    assert await refusal(world.access.administrator(admin, changes=False)) is ErrorCode.UNAUTHORIZED
    await world.access.administrator(other, changes=True)
    for token in (merchant, dateless):
        await world.access.manager(token, "biz_1", changes=True)
    await revocations(world).revoke(RevokedClaim.SUBJECT, "ada", by=OPERATOR)
    for token in (merchant, dateless):
        assert await refusal(world.access.manager(token, "biz_1", changes=False)) is ErrorCode.UNAUTHORIZED
    assert await refusal(world.access.administrator(other, changes=False)) is ErrorCode.UNAUTHORIZED
    await world.access.manager(merchant | {"iat": now + 1}, "biz_1", changes=True)


async def test_a_revocation_is_audited_and_has_a_printable_name(world: AccessWorld) -> None:
    revoke = partial(revocations(world).revoke, by=OPERATOR)
    await revoke(RevokedClaim.SUBJECT, "bo")
    [entry] = await world.store.transaction.audit.list_entries(AuditFilter(), None, 10)
    assert (entry.action, entry.object_id, entry.object_kind) == ("token.revoke", "bo", "token")
    for wrong in ("", "a\nb", "a" * 256):
        assert await refusal(revoke(RevokedClaim.TOKEN, wrong)) is ErrorCode.VALIDATION_ERROR


async def test_each_realm_takes_its_own_tokens(world: AccessWorld) -> None:
    as_read = "".join  # no constant of the code, as in a token
    admin: Any = {"type": as_read(("ad", "min")), "role": as_read(("AD", "MIN"))}
    merchant: Any = {"type": as_read(("mer", "chant")), "emailVerified": True}
    assert (await world.access.administrator(admin, changes=True)).subject == "ada"
    assert (await world.access.manager(merchant, "biz_1", changes=True)).business.id == "biz_1"
    odd_types = ("ADMIN", "admi", "admins", "MERCHANT", "merchan", "merchants", "b", None)
    odd = [
        *({**admin, "type": other} for other in odd_types),
        *({**admin, "role": other} for other in (None, ["ADMIN"])),
    ]
    for token in (merchant, {**merchant, "role": "ADMIN"}, *odd):
        assert await refusal(world.access.administrator(token, changes=False)) is ErrorCode.FORBIDDEN
    manager: Any = partial(world.access.manager, changes=False)
    strangers: list[Any] = [{**admin, "emailVerified": True}, {**merchant, "sub": "eve"}]
    for token in (*strangers, *({**merchant, "type": other} for other in odd_types)):
        assert await refusal(manager(token, "biz_1")) is ErrorCode.FORBIDDEN
    for unverified in ("true", None):
        assert (
            await refusal(manager({**merchant, "emailVerified": unverified}, "biz_1")) is ErrorCode.EMAIL_NOT_VERIFIED
        )
    assert await refusal(manager(merchant, "biz_2")) is ErrorCode.FORBIDDEN
    del world.store.state.businesses["biz_1"]
    assert await refusal(manager(merchant, "biz_1")) is ErrorCode.FORBIDDEN


@pytest.mark.parametrize("others", [REMEMBERED_MAX - 1, REMEMBERED_MAX])
async def test_of_too_many_keys_the_one_read_longest_ago_is_forgotten(world: AccessWorld, others: int) -> None:
    first, *more = (number.to_bytes(2, "big") for number in range(others))
    world.access.cached.update(dict.fromkeys((first, *more), KeyHolder(world.key, world.business)))
    await world.with_key()
    assert len(world.access.cached) == REMEMBERED_MAX
    assert (first in world.access.cached) is (others < REMEMBERED_MAX)
    assert world.key.secret_hash in world.access.cached
