"""What every Store promises to one who acts for a key as it stood some time ago: nothing, unless it stands so still."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from payagg_testing.builders import NOW, REFERENCE, a_business, a_key, a_payment

from payagg.application.ports import ReferenceTaken, StaleKey
from payagg.application.store import KeyHolder, Store
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.domain.values import Environment
from tests.contracts.payments import OTHER, stored


async def a_holder(store: Store) -> KeyHolder:
    """An active key of an active, approved business, as the store found it."""
    async with store.begin() as tx:
        await tx.businesses.add(a_business())
        await tx.api_keys.add(a_key())
    holder = await store.find_key(a_key().secret_hash)
    assert holder is not None
    return holder


standing_changes = pytest.mark.parametrize(
    "change",
    [
        lambda holder: KeyHolder(holder.key.revoke(NOW), holder.business),
        lambda holder: KeyHolder(holder.key, replace(holder.business, status=BusinessStatus.SUSPENDED)),
        lambda holder: KeyHolder(holder.key, replace(holder.business, status=BusinessStatus.RESTRICTED)),
        lambda holder: KeyHolder(holder.key, replace(holder.business, kyc_status=KycStatus.UNDER_REVIEW)),
    ],
    ids=["key revoked", "business suspended", "business restricted", "KYC moved"],
)


async def changed(store: Store, remembered: KeyHolder, change: Callable[[KeyHolder], KeyHolder]) -> KeyHolder:
    """The holder as it stands after `change`, which is stored."""
    now = change(remembered)
    async with store.begin() as tx:
        if now.key != remembered.key:
            await tx.api_keys.save(now.key)
        if now.business != remembered.business:
            await tx.businesses.save(now.business)
    return now


class RememberedKeyContract:
    async def test_a_payment_is_added_for_a_key_that_stands_as_remembered(self, store: Store) -> None:
        remembered = await a_holder(store)
        payment = a_payment(idempotency_key="order-1")
        assert await store.add_payment(payment, remembered) == (payment, True)
        assert await store.find_payment(REFERENCE) == payment

    @standing_changes
    async def test_nothing_is_added_for_a_key_that_stands_otherwise(
        self, store: Store, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        remembered = await a_holder(store)
        now = await changed(store, remembered, change)
        with pytest.raises(StaleKey):
            await store.add_payment(a_payment(idempotency_key="order-1"), remembered)
        assert await store.find_payment(REFERENCE) is None
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        assert await store.add_payment(again, now) == (again, True)  # the idempotency key had stayed free

    async def test_a_remembered_key_must_exist(self, store: Store) -> None:
        for key in (None, "order-1"):
            with pytest.raises(StaleKey):
                await store.add_payment(a_payment(idempotency_key=key), KeyHolder(a_key(), a_business()))
        assert await store.find_payment(REFERENCE) is None

    async def test_a_payment_is_found_for_a_key_that_stands_as_remembered(self, store: Store) -> None:
        remembered = await a_holder(store)
        assert await store.find_payment(REFERENCE, remembered) is None
        payment = await stored(store)
        assert await store.find_payment(REFERENCE, remembered) == payment

    @standing_changes
    async def test_nothing_is_found_for_a_key_that_stands_otherwise(
        self, store: Store, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        remembered = await a_holder(store)
        payment = await stored(store)
        now = await changed(store, remembered, change)
        for reference in (REFERENCE, OTHER):
            with pytest.raises(StaleKey):
                await store.find_payment(reference, remembered)
        assert await store.find_payment(REFERENCE, now) == payment

    async def test_a_key_remembered_while_reading_must_exist(self, store: Store) -> None:
        await stored(store)
        with pytest.raises(StaleKey):
            await store.find_payment(REFERENCE, KeyHolder(a_key(), a_business()))

    async def test_a_key_that_stands_as_remembered_gets_the_original(self, store: Store) -> None:
        remembered = await a_holder(store)
        assert await store.find_original("biz_1", Environment.SANDBOX, "order-1", remembered) is None
        first = await stored(store, idempotency_key="order-1")
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        assert await store.add_payment(again, remembered) == (first, False)
        assert await store.find_original("biz_1", Environment.SANDBOX, "order-1", remembered) == first

    @standing_changes
    async def test_a_key_that_stands_otherwise_learns_of_no_original(
        self, store: Store, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        remembered = await a_holder(store)
        first = await stored(store, idempotency_key="order-1")
        now = await changed(store, remembered, change)
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        with pytest.raises(StaleKey):
            await store.add_payment(again, remembered)
        for key in ("order-1", "order-2"):
            with pytest.raises(StaleKey):
                await store.find_original("biz_1", Environment.SANDBOX, key, remembered)
        assert await store.add_payment(again, now) == (first, False)

    async def test_a_taken_reference_is_refused_to_a_remembered_key_too(self, store: Store) -> None:
        remembered = await a_holder(store)
        await stored(store)
        with pytest.raises(ReferenceTaken):
            await store.add_payment(a_payment(amount=999), remembered)
