"""What every Store promises to one who acts for a key as it stood some time ago: nothing, unless it stands so still."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from payagg.application.ports import KeyHolder, ReferenceTaken, StaleKey, Store
from payagg.domain.business import BusinessStatus, KycStatus
from payagg.testing.builders import NOW, REFERENCE, a_business, a_key, a_payment
from payagg.testing.contracts.payments import OTHER, stored


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


async def changed(store: Store, believed: KeyHolder, change: Callable[[KeyHolder], KeyHolder]) -> KeyHolder:
    """The holder as it stands after `change`, which is stored."""
    now = change(believed)
    async with store.begin() as tx:
        if now.key != believed.key:
            await tx.api_keys.save(now.key)
        if now.business != believed.business:
            await tx.businesses.save(now.business)
    return now


class RememberedKeyContract:
    async def test_a_payment_is_added_for_a_key_that_stands_as_believed(self, store: Store) -> None:
        believed = await a_holder(store)
        payment = a_payment(idempotency_key="order-1")
        assert await store.add_payment(payment, believed) == (payment, True)
        assert await store.find_payment(REFERENCE) == payment

    @standing_changes
    async def test_nothing_is_added_for_a_key_that_stands_otherwise(
        self, store: Store, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        believed = await a_holder(store)
        now = await changed(store, believed, change)
        with pytest.raises(StaleKey):
            await store.add_payment(a_payment(idempotency_key="order-1"), believed)
        assert await store.find_payment(REFERENCE) is None
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        assert await store.add_payment(again, now) == (again, True)  # the idempotency key had stayed free

    async def test_a_believed_key_must_exist(self, store: Store) -> None:
        for key in (None, "order-1"):
            with pytest.raises(StaleKey):
                await store.add_payment(a_payment(idempotency_key=key), KeyHolder(a_key(), a_business()))
        assert await store.find_payment(REFERENCE) is None

    async def test_a_payment_is_found_for_a_key_that_stands_as_believed(self, store: Store) -> None:
        believed = await a_holder(store)
        assert await store.find_payment(REFERENCE, believed) is None
        payment = await stored(store)
        assert await store.find_payment(REFERENCE, believed) == payment

    @standing_changes
    async def test_nothing_is_found_for_a_key_that_stands_otherwise(
        self, store: Store, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        believed = await a_holder(store)
        payment = await stored(store)
        now = await changed(store, believed, change)
        for reference in (REFERENCE, OTHER):
            with pytest.raises(StaleKey):
                await store.find_payment(reference, believed)
        assert await store.find_payment(REFERENCE, now) == payment

    async def test_a_key_believed_while_reading_must_exist(self, store: Store) -> None:
        await stored(store)
        with pytest.raises(StaleKey):
            await store.find_payment(REFERENCE, KeyHolder(a_key(), a_business()))

    async def test_on_belief_alone_nobody_learns_of_the_original(self, store: Store) -> None:
        believed = await a_holder(store)
        first = await stored(store, idempotency_key="order-1")
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        with pytest.raises(StaleKey):
            await store.add_payment(again, believed)
        assert await store.add_payment(again) == (first, False)

    async def test_a_taken_reference_is_refused_to_a_believed_key_too(self, store: Store) -> None:
        believed = await a_holder(store)
        await stored(store)
        with pytest.raises(ReferenceTaken):
            await store.add_payment(a_payment(amount=999), believed)
