"""What every Store promises to one who acts for a key as it stood some time ago: nothing, unless it stands so still."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from payagg_testing.builders import NOW, REFERENCE, SANDBOX, a_business, a_key, a_payment

from payagg.application.ports.accounts import KeyHolder
from payagg.application.ports.outside import KeyStateChanged, ReferenceTaken
from payagg.domain.business import BusinessStatus, KycStatus
from tests.contracts.database import Database, put
from tests.contracts.payments import OTHER, stored


async def a_holder(db: Database) -> KeyHolder:
    """An active key of an active, approved business, as the store found it."""
    await put(db, a_business(), a_key())
    holder = await db.find_key(a_key().secret_hash)
    assert holder is not None
    return holder


class RememberedKeyContract:
    async def test_a_cached_key_that_has_not_changed_adds_and_finds_payments(self, db: Database) -> None:
        cached = await a_holder(db)
        assert await db.find_payment(REFERENCE, cached) is None
        assert await db.find_original("biz_1", SANDBOX, "order-1", cached) is None
        payment = a_payment(idempotency_key="order-1")
        assert await db.add_payment(payment, cached) == (payment, True)
        assert await db.find_payment(REFERENCE, cached) == payment
        assert await db.find_original("biz_1", SANDBOX, "order-1", cached) == payment
        again = a_payment(reference=OTHER, idempotency_key="order-1")
        assert await db.add_payment(again, cached) == (payment, False)
        with pytest.raises(ReferenceTaken):
            await db.add_payment(a_payment(amount=999), cached)

    @pytest.mark.parametrize(
        "change",
        [
            lambda holder: KeyHolder(holder.key.revoke(NOW), holder.business),
            lambda holder: KeyHolder(holder.key, replace(holder.business, status=BusinessStatus.SUSPENDED)),
            lambda holder: KeyHolder(holder.key, replace(holder.business, status=BusinessStatus.RESTRICTED)),
            lambda holder: KeyHolder(holder.key, replace(holder.business, kyc_status=KycStatus.UNDER_REVIEW)),
        ],
        ids=["key revoked", "business suspended", "business restricted", "KYC moved"],
    )
    async def test_a_key_that_stands_otherwise_adds_and_learns_nothing(
        self, db: Database, change: Callable[[KeyHolder], KeyHolder]
    ) -> None:
        cached = await a_holder(db)
        first = await stored(db, idempotency_key="order-1")
        now = change(cached)
        if now.key != cached.key:
            await db.api_keys.save(now.key)
        if now.business != cached.business:
            await db.businesses.save(now.business)
        again, new = (a_payment(reference=OTHER, idempotency_key=key) for key in ("order-1", "order-2"))
        for ask in (
            *(db.add_payment(payment, cached) for payment in (again, new)),
            *(db.find_payment(reference, cached) for reference in (REFERENCE, OTHER)),
            *(db.find_original("biz_1", SANDBOX, key, cached) for key in ("order-1", "order-2")),
        ):
            with pytest.raises(KeyStateChanged):
                await ask
        assert await db.find_payment(REFERENCE, now) == first
        assert await db.add_payment(again, now) == (first, False)
        assert await db.add_payment(new, now) == (new, True)  # the idempotency key had stayed free

    async def test_a_cached_key_must_exist(self, db: Database) -> None:
        await stored(db)
        nobody = KeyHolder(a_key(), a_business())
        new = [a_payment(reference=OTHER, idempotency_key=key) for key in (None, "order-1")]
        for ask in (*(db.add_payment(payment, nobody) for payment in new), db.find_payment(REFERENCE, nobody)):
            with pytest.raises(KeyStateChanged):
                await ask
        assert await db.find_payment(OTHER) is None
